// A point, to be read: its columns, its neighbors in the data and on the map, and how far to trust its position.

import { counted } from './columns.js';
import { disc } from './drawing.js';
import { h, iconButton } from './elements.js';

export class Point {
  constructor(page, element) {
    this.page = page;
    this.element = element;
    this.row = -1;
    this.near = [];
  }

  close() {
    this.row = -1;
    this.near = [];
    this.element.hidden = true;
  }

  show(row) {
    const { page, element } = this;
    const { trust, arrays } = page.data;
    this.row = row;
    const k = trust?.neighbors || 10;
    const onMap = page.scene.grid.around(row, Math.min(k, page.data.rows - 1));
    this.near = trust ? Array.from(arrays.dataNeighbors.subarray(row * k, (row + 1) * k)) : [];
    const lines = page.columns.map((column) => [column.name, column.text(row)]).filter(([, text]) => text !== '');
    element.replaceChildren(
      h('header', {}, h('h2', {}, `Row ${counted(row)}`), iconButton('close', 'Close this panel', () => page.close())),
      h('div', { className: 'about' }, page.pictures?.of(row, 84), h('dl', {}, lines.map(([name, text]) => [h('dt', { title: name }, name), h('dd', {}, text)]))),
      ...(trust ? this.trusted(row, k) : []),
      ...(this.near.length ? [h('h3', {}, 'Nearest in the data'), this.list(this.near, new Set(onMap))] : []),
      ...(onMap.length ? [h('h3', {}, 'Nearest on the map'), this.list(onMap, this.near.length ? new Set(this.near) : null)] : []),
    );
    element.hidden = false;
  }

  // What the page knows of how good the position is.
  trusted(row, k) {
    const { kept, strayed } = this.page.data.arrays;
    const parts = [`${kept[row]} of its ${k} nearest rows in the data are among its ${k} nearest on the map.`];
    if (strayed) parts.push(`The network alone would place it ${((100 * strayed[row]) / 65535).toFixed(1)} % of the map’s width away.`);
    const share = kept[row] / k;
    const word = share >= 0.5 ? 'well placed' : share >= 0.2 ? 'fairly placed' : 'roughly placed';
    return [
      h('h3', {}, `Position: ${word}`),
      h('div', { className: 'meter', role: 'img', 'aria-label': `${kept[row]} of ${k}` }, Array.from({ length: k }, (_, i) => h('i', { className: i < kept[row] ? 'on' : '' }))),
      h('p', { className: 'quiet' }, parts.join(' ')),
    ];
  }

  // `both`: rows that are neighbors in the data and on the map.
  list(rows, both) {
    const { page } = this;
    const [first] = page.columns.filter((column) => column.kind === 'text').concat(page.columns.filter((column) => column.kind !== 'text'));
    const item = (row) =>
      h(
        'li',
        {},
        h(
          'button',
          {
            type: 'button',
            'data-row': String(row),
            title: both && !both.has(row) ? 'Not a neighbor in both' : `row ${counted(row)}`,
            className: both && !both.has(row) ? 'alone' : '',
            onclick: () => page.open(row),
            onmouseenter: () => page.point(row),
            onmouseleave: () => page.point(-1),
            onfocus: () => page.point(row),
          },
          page.pictures?.of(row, 24) || h('i', { style: { background: page.legend.colorOf(row) } }),
          page.pictures ? null : h('span', {}, (first && first.text(row)) || `row ${counted(row)}`),
        ),
      );
    return h('ul', { className: page.pictures ? 'near tiles' : 'near' }, rows.map(item));
  }

  // Lines to the neighbors in the data, however far away they are.
  paint(context) {
    if (this.row < 0) return;
    const { scene, look, legend } = this.page;
    const [left, top] = scene.toScreen(scene.x[this.row], scene.y[this.row]);
    context.strokeStyle = look.ink;
    context.lineWidth = 1.2;
    context.globalAlpha = 0.5;
    context.beginPath();
    for (const row of this.near) {
      context.moveTo(left, top);
      context.lineTo(...scene.toScreen(scene.x[row], scene.y[row]));
    }
    context.stroke();
    context.globalAlpha = 1;
    for (const row of this.near) disc(context, ...scene.toScreen(scene.x[row], scene.y[row]), 4, legend.colorOf(row), look.ink, 1);
    disc(context, left, top, 7, legend.colorOf(this.row), look.ground, 2.5);
    disc(context, left, top, 8.5, null, look.ink, 1.6);
  }
}
