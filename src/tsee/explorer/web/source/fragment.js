// A link to what one sees: the view, the colors, the filters, the search and the selection, in the address after "#".

import { later } from './elements.js';

// A longer list of rows is not part of the link.
const MAX_LETTERS = 3000;

// Rows in ascending order as 3,5-9.
export function rangesOf(rows) {
  const parts = [];
  for (let from = 0; from < rows.length; ) {
    let to = from;
    while (to + 1 < rows.length && rows[to + 1] === rows[to] + 1) to++;
    parts.push(from === to ? String(rows[from]) : `${rows[from]}-${rows[to]}`);
    from = to + 1;
  }
  return parts.join(',');
}

export function rowsOf(text, n) {
  const rows = [];
  for (const part of text.split(',')) {
    const [from, to = from] = part.split('-').map(Number);
    if (!Number.isInteger(from) || !Number.isInteger(to)) continue;
    for (let row = Math.max(0, from); row <= Math.min(to, n - 1); row++) rows.push(row);
  }
  return rows;
}

export class Fragment {
  constructor(page) {
    this.page = page;
    this.ready = false;
    this.write = later(250, () => this.ready && this.put());
  }

  text() {
    const { page } = this;
    const { scene } = page;
    const parts = new URLSearchParams();
    if (!page.atHome) {
      const [x, y] = scene.toMap(...scene.fromScreen(scene.width / 2, scene.height / 2));
      parts.set('at', [x, y, scene.span].map((value) => Number(value.toPrecision(5))).join(','));
    }
    if (page.column && page.column !== page.colorable[0]) parts.set('color', page.column.name);
    if (page.versions?.one) parts.set('version', page.versions.state);
    if (page.legend.filters) parts.set('only', JSON.stringify(page.legend.state));
    for (const { column, legend } of page.filters.chosen) parts.append('filter', JSON.stringify([column.name, legend.filters ? legend.state : null]));
    if (page.field?.value.trim()) parts.set('find', page.field.value.trim());
    if (page.details.row >= 0) parts.set('row', String(page.details.row));
    if (page.selected) {
      const rows = rangesOf(page.selected);
      if (rows.length <= MAX_LETTERS) parts.set('rows', rows);
    }
    for (const { name, rows } of page.pins) {
      const text = rangesOf(rows);
      if (text.length <= MAX_LETTERS) parts.append('pin', `${name}:${text}`);
    }
    return parts.toString();
  }

  put() {
    const text = this.text();
    try {
      history.replaceState(null, '', text ? `#${text}` : location.href.replace(/#.*$/, ''));
    } catch {
      // a page inside a notebook has no address
    }
  }

  // Restores what a link says. Parts that do not fit the page are left out.
  async take() {
    const { page } = this;
    const parts = new URLSearchParams(location.hash.slice(1));
    const n = page.data.rows;
    const named = (name) => page.colorable.find((column) => column.name === name);
    const read = (text) => {
      try {
        return JSON.parse(text);
      } catch {
        return null;
      }
    };
    if (named(parts.get('color'))) page.colorBy(page.colorable.indexOf(named(parts.get('color'))));
    if (page.versions && parts.has('version')) page.versions.state = parts.get('version');
    if (Array.isArray(read(parts.get('only')))) page.legend.state = read(parts.get('only')).map(String);
    for (const filter of parts.getAll('filter').map(read)) {
      const column = Array.isArray(filter) && page.filters.columns.find((other) => other.name === filter[0]);
      if (column && !page.filters.chosen.some((other) => other.column === column)) page.filters.add(column, Array.isArray(filter[1]) ? filter[1].map(String) : null);
    }
    for (const pin of parts.getAll('pin')) {
      const at = pin.lastIndexOf(':');
      const rows = rowsOf(pin.slice(at + 1), n);
      if (at > 0 && rows.length) page.pins.push({ name: pin.slice(0, at), rows });
    }
    page.sayPins();
    if (parts.get('find') && page.field) {
      page.field.value = parts.get('find');
      page.search(page.field.value);
    }
    if (parts.get('rows')) page.select(rowsOf(parts.get('rows'), n));
    const row = parts.has('row') ? Number(parts.get('row')) : -1;
    if (Number.isInteger(row) && row >= 0 && row < n) page.open(row, false);
    await page.update();
    const [x, y, span] = (parts.get('at') || '').split(',').map(Number);
    if ([x, y, span].every(Number.isFinite) && span > 0) await page.scene.lookFrom(x, y, span);
    this.ready = true;
  }
}
