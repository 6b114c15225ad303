// The legend: names to click, or a scale on which to drag a range, which decide the points that are shown.

import { categoryColors, scaleColor, MISSING } from './colors.js';
import { counted } from './columns.js';
import { h, later } from './elements.js';
import { BINS, Histogram } from './histogram.js';

// More names than this are sorted by frequency, and can be searched.
const MAX_UNSORTED = 20;
const MAX_LISTED = 300;

export class Legend {
  // `filter`: whether it only chooses points, and another legend colors them.
  constructor(element, base, changed, filter = false) {
    this.element = element;
    this.filter = filter;
    this.base = base;
    this.changed = changed;
    this.column = null;
    this.only = new Set(); // the categories shown, all if empty; the code after the last one is "missing"
    this.range = null; // of the numbers shown
  }

  show(column, theme) {
    if (column !== this.column) {
      this.only.clear();
      this.range = null;
      this.wanted = '';
    }
    this.column = column;
    this.theme = theme;
    this.element.replaceChildren();
    if (!column) {
      this.colors = [this.base[theme][0]];
      return;
    }
    if (column.kind === 'category') this.showCategories();
    else this.showNumbers();
  }

  get filters() {
    return this.only.size > 0 || this.range !== null;
  }

  // The code of each row's color.
  codes(n) {
    const { column } = this;
    if (!column) return new Uint8Array(n);
    if (column.kind === 'category') return column.codes;
    const codes = new Uint8Array(n);
    const { values } = column;
    const { low, high } = column.range;
    for (let i = 0; i < n; i++) {
      const share = (values[i] - low) / (high - low);
      codes[i] = Number.isNaN(share) ? BINS : Math.min(BINS - 1, Math.max(0, Math.floor(share * BINS)));
    }
    return codes;
  }

  // What is chosen, in words, and the choice that such words were made from; null for no choice.
  get state() {
    const { column, only, range } = this;
    if (only.size) return [...only].map((code) => (code < column.names.length ? column.names[code] : ''));
    return range && range.map((value) => (Number.isFinite(value) ? value : ''));
  }

  set state(chosen) {
    const { column } = this;
    if (!column || (!chosen && !this.filters)) return;
    this.only.clear();
    this.range = null;
    if (chosen && column.kind === 'category') {
      const codes = chosen.map((name) => (name === '' ? column.names.length : column.names.indexOf(name)));
      this.only = new Set(codes.filter((code) => code >= 0));
    } else if (chosen) {
      const [low, high] = chosen.map((value) => (value === '' ? NaN : Number(value)));
      const known = [Number.isFinite(low) ? low : -Infinity, Number.isFinite(high) ? high : Infinity];
      if (known.some(Number.isFinite)) this.range = known;
    }
    this.show(column, this.theme);
  }

  // Marks rows that the legend filters out as not shown.
  hide(shown) {
    const { column, only, range } = this;
    if (only.size) {
      for (let i = 0; i < shown.length; i++) if (!only.has(column.codes[i])) shown[i] = 0;
    } else if (range) {
      for (let i = 0; i < shown.length; i++) {
        if (!(column.values[i] >= range[0] && column.values[i] <= range[1])) shown[i] = 0;
      }
    }
  }

  colorOf(row) {
    const code = this.column ? this.codeOf(row) : 0;
    return this.colors[code];
  }

  codeOf(row) {
    if (this.column.kind === 'category') return this.column.codes[row];
    const { low, high } = this.column.range;
    const share = (this.column.values[row] - low) / (high - low);
    return Number.isNaN(share) ? BINS : Math.min(BINS - 1, Math.max(0, Math.floor(share * BINS)));
  }

  reset() {
    this.only.clear();
    this.range = null;
    this.update();
  }

  update() {
    this.show(this.column, this.theme);
    this.changed();
  }

  // ---- categories ----

  showCategories() {
    const { column, theme } = this;
    const { names, counts } = column;
    this.colors = [...categoryColors(this.base[theme], counts), MISSING[theme]];
    const order = names.map((_, i) => i);
    if (names.length > MAX_UNSORTED) order.sort((a, b) => counts[b] - counts[a] || a - b);
    const list = h('ul', { className: 'names', role: 'list' });
    const fill = () => {
      const word = (this.wanted || '').toLowerCase();
      const fits = order.filter((code) => names[code].toLowerCase().includes(word));
      list.replaceChildren(...fits.slice(0, MAX_LISTED).map((code) => this.item(code, names[code], counts[code])));
      if (fits.length > MAX_LISTED) list.append(h('li', { className: 'quiet' }, `and ${counted(fits.length - MAX_LISTED)} more`));
      if (!fits.length) list.append(h('li', { className: 'quiet' }, 'No matching name'));
      if (column.missing && !word) list.append(this.item(names.length, 'no value', column.missing));
    };
    fill();
    if (names.length > MAX_UNSORTED) {
      const field = h('input', {
        type: 'search',
        className: 'find',
        placeholder: `Find among ${counted(names.length)}`,
        'aria-label': 'Find a name in the legend',
        value: this.wanted || '',
        oninput: later(120, () => {
          this.wanted = field.value;
          fill();
        }),
      });
      this.element.append(field);
    }
    const scroll = this.element.querySelector('ul')?.scrollTop;
    this.element.append(list);
    if (scroll) list.scrollTop = scroll;
  }

  item(code, name, count) {
    const on = this.only.has(code);
    return h(
      'li',
      {},
      h(
        'button',
        {
          type: 'button',
          className: this.only.size && !on ? 'off' : '',
          'aria-pressed': String(on),
          'data-code': String(code),
          title: name,
          onclick: () => this.toggle(code),
        },
        this.filter ? null : h('i', { style: { background: this.colors[code] } }),
        h('span', {}, name || '(empty)'),
        h('b', {}, counted(count)),
      ),
    );
  }

  toggle(code) {
    if (!this.only.delete(code)) this.only.add(code);
    // Only the marks change, so that the list keeps its scroll position and the focus.
    for (const button of this.element.querySelectorAll('button[data-code]')) {
      const on = this.only.has(Number(button.dataset.code));
      button.className = this.only.size && !on ? 'off' : '';
      button.setAttribute('aria-pressed', String(on));
    }
    this.changed();
  }

  // ---- numbers ----

  showNumbers() {
    const { column, theme } = this;
    this.colors = Array.from({ length: BINS }, (_, i) => scaleColor((i + 0.5) / BINS, theme));
    this.colors.push(MISSING[theme]);
    const histogram = new Histogram(column, theme, !this.filter, this.range, (range) => {
      this.range = range;
      this.changed();
    });
    this.element.append(...histogram.elements);
  }
}
