// Rows as a table, of which only the lines in view are elements.

import { counted } from './columns.js';
import { h } from './elements.js';

const LINE = 28; // the height of a line, in pixels
const AROUND = 6; // lines beyond the view

// `pick` is called with the row of a line that is clicked, or entered by the keyboard.
export function table(columns, rows, pick, point) {
  const sizes = [58, ...columns.map((column) => (column.kind === 'text' ? 250 : column.date ? 88 : 74))];
  const widths = sizes.map((size) => `${size}px`).join(' ');
  const width = `${sizes.reduce((sum, size) => sum + size + 12, 0)}px`;
  const body = h('div', { className: 'lines', style: { height: `${rows.length * LINE}px`, width } });
  const head = h('div', { className: 'head', style: { gridTemplateColumns: widths } }, h('span', {}, 'row'), columns.map((column) => h('span', { title: column.name }, column.name)));
  const scroll = h('div', { className: 'table', role: 'group', 'aria-label': `${counted(rows.length)} rows`, onscroll: () => fill() }, head, body);
  const line = (row, at) =>
    h(
      'button',
      {
        type: 'button',
        className: 'line',
        'data-row': String(row),
        'data-at': String(at),
        style: { top: `${at * LINE}px`, gridTemplateColumns: widths },
        onclick: () => pick(row),
        onmouseenter: () => point(row),
        onmouseleave: () => point(-1),
        onfocus: () => point(row),
      },
      h('span', { className: 'number' }, counted(row)),
      columns.map((column) => h('span', { title: column.text(row) }, column.text(row))),
    );
  const fill = () => {
    const from = Math.max(0, Math.floor(scroll.scrollTop / LINE) - AROUND);
    const to = Math.min(rows.length, from + Math.ceil((scroll.clientHeight || 300) / LINE) + 2 * AROUND);
    const focused = scroll.contains(document.activeElement) ? document.activeElement.dataset.at : null;
    body.replaceChildren(...Array.from(rows.slice(from, to), (row, at) => line(row, from + at)));
    if (focused) body.querySelector(`[data-at="${focused}"]`)?.focus({ preventScroll: true });
  };
  // The arrow keys go from line to line.
  scroll.addEventListener('keydown', (event) => {
    const at = Number(event.target.dataset?.at);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (!step || Number.isNaN(at)) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.min(rows.length - 1, Math.max(0, at + step));
    const top = next * LINE;
    const room = scroll.clientHeight - 2 * LINE;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top > scroll.scrollTop + room) scroll.scrollTop = top - room;
    fill();
    body.querySelector(`[data-at="${next}"]`)?.focus({ preventScroll: true });
  });
  requestAnimationFrame(fill);
  fill();
  return scroll;
}
