// A histogram of numbers or dates, on which a range is dragged, or typed below.

import { FAINT, MISSING, scaleColor } from './colors.js';
import { counted } from './columns.js';
import { h } from './elements.js';

export const BINS = 64;

export class Histogram {
  // `colored`: whether the bars have the colors of the points.
  constructor(column, theme, colored, range, changed) {
    Object.assign(this, { column, theme, colored, range, changed });
    const { low, high, least, most, missing } = column.range;
    this.counts = new Uint32Array(BINS);
    for (const value of column.values) {
      if (!Number.isNaN(value)) this.counts[Math.min(BINS - 1, Math.max(0, Math.floor(((value - low) / (high - low)) * BINS)))]++;
    }
    this.canvas = h('canvas', {
      className: 'scale',
      width: 3 * 216,
      height: 3 * 64,
      role: 'img',
      'aria-label': `Distribution from ${column.short(low)} to ${column.short(high)}`,
    });
    const end = (label, side) =>
      h('input', {
        type: 'text',
        'aria-label': `${label}: ${column.name}`,
        spellcheck: false,
        autocomplete: 'off',
        onchange: (event) => this.type(side, event.target.value),
        onfocus: (event) => event.target.select(),
      });
    this.ends = [end('From', 0), end('To', 1)];
    this.listen();
    this.paint();
    const notes = [];
    if (least < low || most > high) notes.push(`full range ${column.short(least)} to ${column.short(most)}`);
    if (missing) notes.push(`${counted(missing)} without a value`);
    notes.push('drag or type a range');
    this.elements = [this.canvas, h('div', { className: 'ends' }, ...this.ends), h('p', { className: 'quiet' }, notes.join(' · '))];
  }

  paint() {
    const { canvas, counts, range, theme, column } = this;
    const { low, high } = column.range;
    const context = canvas.getContext('2d');
    const tallest = Math.max(...counts, 1);
    const width = canvas.width / BINS;
    context.clearRect(0, 0, canvas.width, canvas.height);
    for (let at = 0; at < BINS; at++) {
      const value = low + ((at + 0.5) / BINS) * (high - low);
      const on = !range || (value >= range[0] && value <= range[1]);
      context.fillStyle = !on ? FAINT[theme] : this.colored ? scaleColor((at + 0.5) / BINS, theme) : MISSING[theme];
      const height = (counts[at] / tallest) * 126;
      context.globalAlpha = this.colored ? (on ? 0.55 : 0.6) : 1;
      context.fillRect(at * width, 138 - height, width - 1.5, height);
      context.globalAlpha = 1;
      context.fillRect(at * width, 150, width + 0.5, this.colored ? 24 : 6);
    }
    const [a, b] = range || [-Infinity, Infinity];
    this.ends[0].value = column.short(Number.isFinite(a) ? a : low);
    this.ends[1].value = column.short(Number.isFinite(b) ? b : high);
  }

  set(range) {
    this.range = range && (Number.isFinite(range[0]) || Number.isFinite(range[1])) ? range : null;
    this.paint();
  }

  type(side, text) {
    const value = this.column.parse(text);
    const range = [...(this.range || [-Infinity, Infinity])];
    range[side] = Number.isNaN(value) ? (side ? Infinity : -Infinity) : value;
    this.set(range[0] <= range[1] ? range : null);
    this.changed(this.range);
  }

  listen() {
    const { canvas } = this;
    let from = null;
    const valueAt = (event) => {
      const { low, high } = this.column.range;
      const box = canvas.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      // An end includes the values beyond it.
      return share <= 0.01 ? -Infinity : share >= 0.99 ? Infinity : low + share * (high - low);
    };
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      from = valueAt(event);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (from === null) return;
      const to = valueAt(event);
      this.set([Math.min(from, to), Math.max(from, to)]);
    });
    canvas.addEventListener('pointerup', (event) => {
      if (from === valueAt(event)) this.set(null);
      from = null;
      this.changed(this.range);
    });
  }
}
