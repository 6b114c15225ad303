// What the keys do, and what the page is.

import { counted, many } from './columns.js';
import { h } from './elements.js';

const KEYS = [
  ['Drag, or arrow keys', 'move'],
  ['Wheel, pinch, + and −', 'zoom; 0 shows the whole map'],
  ['Shift and drag, or L', 'lasso; B for a box, V to move again'],
  ['Names in the legend', 'click to show only these'],
  ['/', 'search'],
  ['N', 'place new rows; or drop or paste them anywhere'],
  ['T, E, D', 'names, exemplars, dark or light'],
  ['Esc', 'clear'],
];

export function help(data) {
  const pictures = data.pictures?.rows && data.arrays[data.pictures.rows].length;
  const dialog = h(
    'dialog',
    { className: 'help', onclose: () => dialog.remove(), onclick: (event) => event.target === dialog && dialog.close() },
    h('h2', {}, 'Finding your way'),
    h('dl', {}, KEYS.map(([key, means]) => [h('dt', {}, key), h('dd', {}, means)])),
    h(
      'p',
      { className: 'quiet' },
      `A map of ${many(data.rows, 'row')} by ${data.method} of tsee ${data.version}. Near points are alike; directions mean nothing. `,
      pictures ? `Pictures are here of ${counted(pictures)} rows. ` : '',
      'Everything is in this file: nothing is loaded, and nothing leaves your browser.',
    ),
    h('button', { type: 'button', className: 'plain', onclick: () => dialog.close() }, 'Close'),
  );
  document.body.append(dialog);
  dialog.showModal();
}
