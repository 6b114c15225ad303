// A slider over the versions of a map that was updated: the map as it was at a version, what that version added in full
// color over the older rows.

import { mixed } from './colors.js';
import { counted, many } from './columns.js';
import { h } from './elements.js';

const NAME = /^(?:fit|update (\d+))$/;
// How far the colors of older rows go towards the background.
const PALE = { light: 0.72, dark: 0.7 };
const LATER = 0;
const OLDER = 1;
const ADDED = 2;

// The column of the versions, or undefined.
export function versionsIn(columns) {
  return columns.find(({ name, kind, names }) => name === 'version' && kind === 'category' && names.length > 1 && names.every((one) => NAME.test(one)));
}

export class Versions {
  constructor(column, changed) {
    this.changed = changed;
    const numberOf = (name) => Number(NAME.exec(name)[1] || 0);
    const order = column.names.map((_, code) => code).sort((a, b) => numberOf(column.names[a]) - numberOf(column.names[b]));
    this.names = order.map((code) => column.names[code]);
    this.counts = order.map((code) => column.counts[code]);
    const ranks = new Map(order.map((code, rank) => [code, rank]));
    this.ranks = Uint16Array.from(column.codes, (code) => ranks.get(code) ?? 0);
    this.at = this.names.length; // after the last version: all rows alike
    this.build();
  }

  build() {
    const ticks = [...this.names, 'all'];
    this.input = h('input', {
      type: 'range',
      id: 'version',
      min: '0',
      max: String(this.names.length),
      step: '1',
      value: String(this.at),
      'aria-label': 'Version of the map',
      oninput: () => this.go(Number(this.input.value)),
    });
    this.title = h('strong', {});
    this.said = h('p', { className: 'quiet', role: 'status' });
    const marks = h('div', { className: 'marks', 'aria-hidden': 'true' }, ticks.length <= 30 ? ticks.map(() => h('i', {})) : null);
    this.element = h('div', { className: 'versions' }, h('header', {}, h('span', {}, 'Version'), this.title), h('div', { className: 'track' }, marks, this.input), this.said);
    this.say();
  }

  // Whether one version is looked at.
  get one() {
    return this.at < this.names.length;
  }

  // The name of the version, or '' for all.
  get state() {
    return this.one ? this.names[this.at] : '';
  }

  set state(name) {
    const at = this.names.indexOf(name);
    this.at = at < 0 ? this.names.length : at;
    this.input.value = String(this.at);
    this.say();
  }

  go(at) {
    this.at = Math.min(this.names.length, Math.max(0, at));
    this.input.value = String(this.at);
    this.say();
    this.changed();
  }

  say() {
    const { at, names, counts } = this;
    const name = this.one ? names[at] : 'all';
    this.title.textContent = name;
    this.input.setAttribute('aria-valuetext', name);
    this.element.style.setProperty('--share', String(at / names.length));
    this.element.classList.toggle('one', this.one);
    if (!this.one) {
      this.said.replaceChildren(`${names.length} versions: move to see the map grow`);
      return;
    }
    const older = counts.slice(0, at).reduce((sum, count) => sum + count, 0);
    const parts = [h('i', { className: 'added' }), at ? `${counted(counts[at])} added` : many(counts[at], 'row')];
    if (older) parts.push(h('i', { className: 'older' }), `${counted(older)} older`);
    this.said.replaceChildren(...parts);
  }

  standing(row) {
    if (!this.one || this.ranks[row] === this.at) return ADDED;
    return this.ranks[row] < this.at ? OLDER : LATER;
  }

  isThere(row) {
    return this.standing(row) !== LATER;
  }

  hide(shown) {
    if (!this.one) return;
    for (let i = 0; i < shown.length; i++) if (this.ranks[i] > this.at) shown[i] = 0;
  }

  // Codes and colors in which the older rows are pale: a second set of colors after the first.
  colored(codes, colors, ground, theme) {
    if (!this.one || this.at === 0) return { codes, colors, older: null };
    const aged = Uint16Array.from(codes, (code, i) => (this.ranks[i] < this.at ? code + colors.length : code));
    return { codes: aged, colors: [...colors, ...colors.map((color) => mixed(color, ground, PALE[theme]))], older: colors.length };
  }

  // A column of the rows that are there, and their positions.
  present(column, x, y) {
    const rows = [];
    for (let i = 0; i < this.ranks.length; i++) if (this.isThere(i)) rows.push(i);
    const pick = (values, Kind) => Kind.from(rows, (row) => values[row]);
    return [{ ...column, codes: pick(column.codes, Uint16Array) }, pick(x, Float32Array), pick(y, Float32Array)];
  }
}
