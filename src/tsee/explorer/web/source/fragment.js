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

// Rows as a part of a link, or null if they are too many.
function linked(rows) {
  const text = rangesOf(rows);
  return text.length <= MAX_LETTERS ? text : null;
}

export function rowsOf(text, n) {
  const there = new Uint8Array(n);
  for (const part of text.split(',')) {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    if (from) there.fill(1, Number(from), Number(to) + 1);
  }
  const rows = [];
  there.forEach((known, row) => known && rows.push(row));
  return rows;
}

// A list in JSON, or null.
function listOf(text) {
  try {
    const list = JSON.parse(text);
    return Array.isArray(list) ? list : null;
  } catch {
    return null;
  }
}

// The words and numbers of a list, as words.
const wordsOf = (list) => list && list.filter((word) => typeof word !== 'object').map(String);

export class Fragment {
  constructor(page) {
    this.page = page;
    this.ready = false;
    this.write = later(250, () => this.ready && this.put());
  }

  // Takes the address, and then every link that is pasted into the open page, or that a step back leads to. What the page
  // itself writes is no such event.
  follow() {
    addEventListener('hashchange', ({ newURL }) => this.take(new URL(newURL).hash));
    return this.take(location.hash);
  }

  text() {
    const { page } = this;
    const { scene } = page;
    const parts = new URLSearchParams();
    if (!page.atHome) {
      const [x, y] = scene.toMap(...scene.fromScreen(scene.width / 2, scene.height / 2));
      parts.set('at', [x, y, scene.span].map((value) => Number(value.toPrecision(5))).join(','));
    }
    if (page.column && page.column !== page.first) parts.set('color', page.column.name);
    if (page.versions?.one) parts.set('version', page.versions.state);
    if (page.legend.filters) parts.set('only', JSON.stringify(page.legend.state));
    for (const { column, legend } of page.filters.chosen) parts.append('filter', JSON.stringify([column.name, legend.filters ? legend.state : null]));
    if (page.field?.value.trim()) parts.set('find', page.field.value.trim());
    if (page.details.row >= 0) parts.set('row', String(page.details.row));
    if (page.selected) {
      const rows = linked(page.selected);
      if (rows) parts.set('rows', rows);
    }
    for (const { name, rows } of page.pins) {
      const text = linked(rows);
      if (text) parts.append('pin', `${name}:${text}`);
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

  // Shows what a link says. The address is not written meanwhile.
  async take(hash) {
    const parts = (this.taken = new URLSearchParams(hash.slice(1)));
    this.ready = false;
    try {
      await this.show(parts);
    } finally {
      if (this.taken === parts) this.ready = true;
    }
  }

  // Shows what a link says and nothing else, except pins too long for a link. Parts that do not fit the page are left out.
  async show(parts) {
    const { page } = this;
    const n = page.data.rows;
    const color = page.colorable.find((column) => column.name === parts.get('color')) ?? page.first;
    if (color !== page.column) page.colorBy(page.colorable.indexOf(color));
    if (page.versions) page.versions.state = parts.get('version');
    page.legend.state = wordsOf(listOf(parts.get('only')));
    page.filters.clear();
    for (const filter of parts.getAll('filter').map(listOf)) {
      const column = filter && page.filters.columns.find((other) => other.name === filter[0]);
      if (column && !page.filters.chosen.some((other) => other.column === column)) page.filters.add(column, Array.isArray(filter[1]) ? wordsOf(filter[1]) : null);
    }
    page.pins = page.pins.filter((pin) => !linked(pin.rows));
    for (const pin of parts.getAll('pin')) {
      const at = pin.lastIndexOf(':');
      const rows = rowsOf(pin.slice(at + 1), n);
      if (at > 0 && rows.length) page.pins.push({ name: pin.slice(0, at), rows });
    }
    page.sayPins();
    const find = parts.get('find') ?? '';
    if (page.field && page.field.value !== find) {
      page.field.value = find;
      page.search(find);
    }
    const rows = rowsOf(parts.get('rows') ?? '', n);
    if (rows.length || page.selected) page.select(rows);
    const [row] = rowsOf(parts.get('row') ?? '', n);
    if (row !== undefined) page.open(row, false);
    else page.details.close();
    await page.update();
    if (this.taken !== parts) return; // another link came in the meantime
    const [x, y, span] = (parts.get('at') ?? '').split(',').map(Number);
    if ([x, y, span].every(Number.isFinite) && span > 0) await page.scene.lookFrom(x, y, span);
    else if (!page.atHome) await page.scene.look();
  }
}
