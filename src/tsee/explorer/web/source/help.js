// Help: what the keys do, and what the page shows.

import { counted, many } from './columns.js';
import { h } from './elements.js';
import { versionsIn } from './versions.js';

const KEYS = [
  ['Drag, or arrow keys', 'move'],
  ['Wheel, pinch, + and −', 'zoom; 0 shows the whole map'],
  ['Shift and drag, or L', 'lasso; B for a box, V to move again'],
  ['Click on a point', 'its neighbors, and how far to trust its position'],
  ['Names in the legend', 'click to show only these categories'],
  ['/', 'search; all words must occur; Enter lists what is found'],
  ['S, I', 'select what is in view; open the row in the middle'],
  ['R', 'read the selection'],
  ['N', 'place new rows; you can also drop or paste them anywhere'],
  ['T, P, C', 'names, pictures, lines of equal density'],
  ['E, D', 'exemplars, dark or light background'],
  ['[ and ]', 'an earlier or later version of the map'],
  ['Esc', 'clear the search, selection or filter'],
];

function keysOf(data) {
  return KEYS.filter(([key]) => (key !== 'Click on a point' || data.trust) && (key !== '[ and ]' || versionsIn(data.columns)));
}

export function help(data) {
  const pictures = data.pictures?.rows && data.arrays[data.pictures.rows].length;
  const dialog = h(
    'dialog',
    { className: 'help', onclose: () => dialog.remove(), onclick: (event) => event.target === dialog && dialog.close() },
    h('h2', {}, 'Help'),
    h('dl', {}, keysOf(data).map(([key, means]) => [h('dt', {}, key), h('dd', {}, means)])),
    h(
      'p',
      { className: 'quiet' },
      `A map of ${many(data.rows, 'row')}, made with ${data.method} of tsee ${data.version}. Points that are close together are similar; directions have no meaning. `,
      pictures ? `The file contains pictures of ${counted(pictures)} rows. ` : '',
      'Everything is in this file: nothing is loaded, and nothing leaves your browser.',
    ),
    h('button', { type: 'button', className: 'plain', onclick: () => dialog.close() }, 'Close'),
  );
  document.body.append(dialog);
  dialog.showModal();
}
