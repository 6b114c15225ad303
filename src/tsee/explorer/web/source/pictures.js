// Pictures of rows: one alone, and many on the map where there is room for them.

import { h } from './elements.js';

const MAX_KEPT = 2000;
// Pictures appear on the map if at most this many rows are in view.
const MAX_IN_VIEW = 1500;
const SIDE = 34; // of a picture on the map, in pixels

export class Pictures {
  constructor(data) {
    const { height, width, colors, pixels, rows } = data.pictures;
    Object.assign(this, { height, width, colors });
    this.all = data.arrays[pixels];
    this.index = rows && new Map(Array.from(data.arrays[rows], (row, at) => [row, at]));
    this.kept = new Map();
  }

  has(row) {
    return !this.index || this.index.has(row);
  }

  // A canvas with the picture of a row, its longer side as long as `side`; null if it has none.
  of(row, side = 112) {
    const drawn = this.draw(row);
    if (!drawn) return null;
    const canvas = h('canvas', { width: this.width, height: this.height, className: 'picture', role: 'img', 'aria-label': `Picture of row ${row}` });
    canvas.getContext('2d').drawImage(drawn, 0, 0);
    const grow = side / Math.max(this.width, this.height);
    canvas.style.width = `${this.width * grow}px`;
    canvas.style.height = `${this.height * grow}px`;
    return canvas;
  }

  draw(row) {
    if (!this.has(row)) return null;
    if (this.kept.has(row)) return this.kept.get(row);
    const { height, width, colors, all } = this;
    const canvas = h('canvas', { width, height });
    const context = canvas.getContext('2d');
    const image = context.createImageData(width, height);
    const from = (this.index ? this.index.get(row) : row) * height * width * colors;
    for (let i = 0; i < height * width; i++) {
      for (let part = 0; part < 3; part++) image.data[4 * i + part] = all[from + i * colors + (colors === 3 ? part : 0)];
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    if (this.kept.size >= MAX_KEPT) this.kept.delete(this.kept.keys().next().value);
    this.kept.set(row, canvas);
    return canvas;
  }

  // Draws the pictures of the rows in view that have room, each framed in the color of its row. Returns their rows.
  paint(context, scene, colorOf, blocked) {
    const [x0, y1] = scene.fromScreen(0, 0);
    const [x1, y0] = scene.fromScreen(scene.width, scene.height);
    const rows = [];
    for (const row of scene.grid.within(x0, y0, x1, y1)) {
      if (!scene.shown[row] || scene.x[row] < x0 || scene.x[row] > x1 || scene.y[row] < y0 || scene.y[row] > y1) continue;
      if (rows.push(row) > MAX_IN_VIEW) return [];
    }
    const grow = SIDE / Math.max(this.width, this.height);
    const [w, t] = [this.width * grow, this.height * grow];
    // Rows near the middle of a cell come first, so that the choice does not change while the map moves.
    const cells = new Map();
    const step = (SIDE + 6) / scene.unit;
    const order = rows.filter((row) => this.has(row)).sort((a, b) => a - b);
    for (const row of order) {
      const key = `${Math.floor(scene.x[row] / step)},${Math.floor(scene.y[row] / step)}`;
      if (!cells.has(key)) cells.set(key, row);
    }
    const taken = blocked.map(({ left, top, right, bottom }) => [left, top, right, bottom]);
    const painted = [];
    context.imageSmoothingEnabled = grow < 1;
    for (const row of cells.values()) {
      const [at, middle] = scene.toScreen(scene.x[row], scene.y[row]);
      const box = [at - w / 2 - 2, middle - t / 2 - 2, at + w / 2 + 2, middle + t / 2 + 2];
      if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
      taken.push(box);
      painted.push(row);
      context.fillStyle = colorOf(row);
      context.fillRect(box[0], box[1], w + 4, t + 4);
      context.drawImage(this.draw(row), at - w / 2, middle - t / 2, w, t);
    }
    return painted;
  }
}
