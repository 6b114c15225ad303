// The card next to a point: its picture and its columns.

import { counted } from './columns.js';
import { h } from './elements.js';

const MAX_LINES = 10;
const MAX_LETTERS = 220;

export class Card {
  constructor(element, columns, pictures) {
    this.element = element;
    this.columns = columns;
    this.pictures = pictures;
  }

  hide() {
    this.element.hidden = true;
  }

  // A row of the map.
  row(row, at, first, color) {
    const columns = [...this.columns].sort((a, b) => (b === first) - (a === first));
    const lines = columns.map((column) => [column.name, column.text(row)]);
    this.show(this.pictures?.of(row), lines, first ? color : null, `row ${counted(row)}`, at);
  }

  show(picture, lines, color, foot, at) {
    const known = lines.filter(([, value]) => value !== '').slice(0, MAX_LINES);
    const parts = known.map(([name, value], line) => [
      h('dt', {}, name),
      h(
        'dd',
        { className: line === 0 && color ? 'first' : '' },
        line === 0 && color ? h('i', { style: { background: color } }) : null,
        value.length > MAX_LETTERS ? value.slice(0, MAX_LETTERS) + '…' : value,
      ),
    ]);
    this.element.replaceChildren(
      ...[picture, known.length ? h('dl', {}, parts) : null, h('footer', {}, foot)].filter(Boolean),
    );
    this.element.hidden = false;
    this.moveTo(at);
  }

  // Next to the pointer, on the side with room.
  moveTo([left, top]) {
    const { offsetWidth: width, offsetHeight: height } = this.element;
    if (window.innerWidth <= 640) {
      // At the other end of the screen, so that the finger does not cover it.
      const y = top > window.innerHeight / 2 ? 76 : window.innerHeight - height - 72;
      this.element.style.transform = `translate(${Math.round((window.innerWidth - width) / 2)}px, ${Math.round(y)}px)`;
      return;
    }
    const gap = 16;
    const x = left + gap + width < window.innerWidth - 8 ? left + gap : left - gap - width;
    const y = Math.min(Math.max(8, top - 12), window.innerHeight - height - 8);
    this.element.style.transform = `translate(${Math.round(Math.max(8, x))}px, ${Math.round(y)}px)`;
  }
}
