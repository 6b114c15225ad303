// Filters by further columns: names to click, or ranges of numbers and dates.

import { h, iconButton } from './elements.js';
import { Legend } from './legend.js';

export class Filters {
  constructor(columns, base, changed) {
    Object.assign(this, { columns, base, changed });
    this.theme = 'light';
    this.chosen = []; // {column, legend, element}
    this.list = h('div', { className: 'filters' });
    this.select = h('select', { id: 'filter', className: 'plain-select', 'aria-label': 'Add a filter', onchange: () => this.pick() });
    this.element = h('div', { className: 'filtering', hidden: columns.length < 2 }, this.list, this.select);
    this.fill();
  }

  fill() {
    const left = this.columns.filter((column) => !this.chosen.some((filter) => filter.column === column));
    this.select.replaceChildren(
      h('option', { value: '' }, 'Add a filter'),
      ...left.map((column) => h('option', { value: String(this.columns.indexOf(column)) }, column.name)),
    );
    this.select.hidden = !left.length;
  }

  pick() {
    if (this.select.value !== '') this.add(this.columns[Number(this.select.value)]);
  }

  add(column, state = null) {
    const part = h('div', { className: 'legend' });
    const legend = new Legend(part, this.base, () => this.changed(), true);
    legend.show(column, this.theme);
    legend.state = state;
    const element = h(
      'div',
      { className: 'filter' },
      h('div', { className: 'chooser' }, h('strong', {}, column.name), iconButton('close', `Remove the filter by ${column.name}`, () => this.remove(column))),
      part,
    );
    this.chosen.push({ column, legend, element });
    this.list.append(element);
    this.fill();
    this.changed();
  }

  remove(column) {
    const at = this.chosen.findIndex((filter) => filter.column === column);
    this.chosen.splice(at, 1)[0].element.remove();
    this.fill();
    this.changed();
  }

  clear() {
    this.chosen.splice(0).forEach((filter) => filter.element.remove());
    this.fill();
  }

  setTheme(theme) {
    this.theme = theme;
    for (const { column, legend } of this.chosen) legend.show(column, theme);
  }

  hide(shown) {
    for (const { legend } of this.chosen) legend.hide(shown);
  }
}
