// The selection, to be read: what sets it apart, its categories, its pictures and its rows.

import { setApart } from './apart.js';
import { counted, many, percent, short } from './columns.js';
import { h, iconButton } from './elements.js';
import { table } from './table.js';

const MAX_BARS = 8;
const MAX_PICTURES = 40;

export class Reading {
  constructor(page, element) {
    this.page = page;
    this.element = element;
    this.rows = null;
  }

  get open() {
    return !this.element.hidden;
  }

  close() {
    this.element.hidden = true;
    this.rows = null;
  }

  show(rows) {
    const { page, element } = this;
    this.rows = rows;
    const wide = h('button', { type: 'button', className: 'text', 'aria-pressed': 'false', onclick: () => this.widen(wide) }, 'Wider');
    element.replaceChildren(
      h('header', {}, h('h2', {}, many(rows.length, 'selected row')), wide, iconButton('close', 'Close this panel', () => page.closeReading())),
      ...this.apart(rows),
      ...this.bars(rows),
      ...this.pictures(rows),
      table(page.columns, rows, (row) => page.open(row), (row) => page.point(row)),
    );
    element.hidden = false;
  }

  widen(button) {
    const wide = this.element.classList.toggle('wide');
    button.textContent = wide ? 'Narrower' : 'Wider';
    button.setAttribute('aria-pressed', String(wide));
    this.page.inset();
  }

  apart(rows) {
    const lines = setApart(this.page.columns, rows, this.page.data.rows);
    if (!lines.length) return [];
    return [
      h('h3', {}, 'What sets them apart'),
      h('ul', { className: 'apart' }, lines.map((line) => h('li', {}, h('span', {}, `${line.column}: `, h('b', {}, line.what)), h('small', {}, said(line))))),
    ];
  }

  bars(rows) {
    const { column, legend } = this.page;
    if (column?.kind !== 'category') return [];
    const counts = new Array(column.names.length + 1).fill(0);
    for (const row of rows) counts[column.codes[row]]++;
    const order = counts.map((_, code) => code).filter((code) => counts[code]).sort((a, b) => counts[b] - counts[a]);
    const bar = (name, color, count) =>
      h(
        'li',
        {},
        h('i', { style: { background: color, width: `${Math.max(1, (100 * count) / rows.length)}%` } }),
        h('span', {}, name || '(empty)'),
        h('b', {}, `${counted(count)} · ${percent(count / rows.length)}`),
      );
    const items = order.slice(0, MAX_BARS).map((code) => bar(code < column.names.length ? column.names[code] : 'no value', legend.colors[code], counts[code]));
    if (order.length > MAX_BARS) items.push(h('li', { className: 'quiet' }, `and ${counted(order.length - MAX_BARS)} more`));
    return [h('h3', {}, column.name), h('ul', { className: 'bars' }, items)];
  }

  pictures(rows) {
    const { pictures } = this.page;
    if (!pictures) return [];
    const some = rows.filter((row) => pictures.has(row));
    const step = Math.max(1, some.length / MAX_PICTURES);
    const chosen = Array.from({ length: Math.min(MAX_PICTURES, some.length) }, (_, i) => some[Math.floor(i * step)]);
    if (!chosen.length) return [];
    const tile = (row) =>
      h('button', { type: 'button', title: `row ${counted(row)}`, 'aria-label': `Row ${row}`, onclick: () => this.page.open(row), onmouseenter: () => this.page.point(row), onmouseleave: () => this.page.point(-1) }, pictures.of(row, 34));
    return [h('div', { className: 'tiles' }, chosen.map(tile))];
  }
}

function said({ mean, here, elsewhere }) {
  if (mean) return `${mean[0]} on average, ${mean[1]} elsewhere`;
  return `${percent(here)} here, ${percent(elsewhere)} elsewhere`;
}

// A name for some rows: what sets them apart most.
export function nameOf(columns, rows, n, at) {
  const [first] = setApart(columns, rows, n).filter((line) => !line.mean && line.here >= 0.5);
  return first ? (/^[\d.]+$/.test(first.what) ? `${first.column} ${first.what}` : first.what.replace(/[“”]/g, '')) : `Selection ${short(at)}`;
}
