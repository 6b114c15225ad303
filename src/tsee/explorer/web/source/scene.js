// The drawn map: points by regl-scatterplot, and over them a canvas for names, exemplars and new rows.

import createScatterplot from 'regl-scatterplot';
import { Grid } from './picking.js';
import { createRenderer } from './renderer.js';

// regl-scatterplot would build its own index of the points; here the grid finds them, faster.
const NO_INDEX = (() => {
  const bytes = new ArrayBuffer(8);
  new Uint8Array(bytes).set([0xdb, 0x18, 64, 0]);
  return bytes;
})();
// The limits of the zoom. Farther in, the rounding of positions to a 65535th would show.
const MAX_ZOOM = 150;
const MIN_ZOOM = 0.2;

export class Scene {
  constructor(canvas, overlay, data) {
    this.canvas = canvas;
    this.overlay = overlay;
    this.listeners = { view: [], hover: [], tap: [], lasso: [], paint: [] };
    const { positions } = data.arrays;
    const n = (this.n = data.rows);
    // From map units to [-1, 1], with equal scales and the map in the middle.
    this.x = new Float32Array(n);
    this.y = new Float32Array(n);
    let width = 0;
    let height = 0;
    for (let i = 0; i < n; i++) {
      if (positions[2 * i] > width) width = positions[2 * i];
      if (positions[2 * i + 1] > height) height = positions[2 * i + 1];
    }
    this.half = [width / 65535, height / 65535]; // half the sides of the map's bounding box
    this.roomy = this.half.map((side) => Math.max(side, 0.1)); // a map can be a line or a single point
    for (let i = 0; i < n; i++) {
      this.x[i] = (2 * positions[2 * i] - width) / 65535;
      this.y[i] = (2 * positions[2 * i + 1] - height) / 65535;
    }
    this.low = data.low;
    this.extent = data.extent;
    this.grid = new Grid(this.x, this.y);
    this.shown = new Uint8Array(n).fill(1); // 0 for a row that is filtered out and drawn faintly
    this.points = Array.from({ length: n }, (_, i) => [this.x[i], this.y[i], 0]);
    this.order = shuffled(n); // so that no class hides another
    this.ordered = new Array(n);
    this.insets = { top: 0, right: 0, bottom: 0, left: 0 };
    this.plot = createScatterplot({
      renderer: createRenderer(),
      canvas,
      width: 'auto',
      height: 'auto',
      pointSize: 3,
      pointScaleMode: 'asinh',
      colorBy: 'category',
      opacityBy: 'category',
      lassoLineWidth: 1.5,
      lassoMinDelay: 5,
      deselectOnDblClick: false,
      deselectOnEscape: false,
      actionKeyMap: { lasso: 'shift' },
      backgroundColor: [0, 0, 0, 0],
    });
    this.camera = this.plot.get('camera');
    this.plot.subscribe('drawing', () => this.paint());
    this.plot.subscribe('view', () => this.moved());
    this.plot.subscribe('lassoEnd', ({ coordinates }) => this.lassoed(coordinates));
    this.drawing = null;
    this.waiting = false;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  on(name, listener) {
    this.listeners[name].push(listener);
  }

  tell(name, ...values) {
    for (const listener of this.listeners[name]) listener(...values);
  }

  // From map coordinates to scene coordinates and back.
  fromMap(x, y) {
    return [((x - this.low[0]) / this.extent) * 2 - this.half[0], ((y - this.low[1]) / this.extent) * 2 - this.half[1]];
  }

  toMap(x, y) {
    return [((x + this.half[0]) / 2) * this.extent + this.low[0], ((y + this.half[1]) / 2) * this.extent + this.low[1]];
  }

  // From scene coordinates to CSS pixels on the canvas and back.
  toScreen(x, y) {
    const view = this.camera.view;
    return [
      this.width / 2 + ((view[0] * x + view[12]) * this.height) / 2,
      this.height / 2 - ((view[5] * y + view[13]) * this.height) / 2,
    ];
  }

  fromScreen(left, top) {
    const view = this.camera.view;
    return [
      (((left - this.width / 2) * 2) / this.height - view[12]) / view[0],
      (((this.height / 2 - top) * 2) / this.height - view[13]) / view[5],
    ];
  }

  get zoom() {
    return this.camera.view[0] / this.home;
  }

  // The pixels per unit of the scene.
  get unit() {
    return (this.camera.view[0] * this.height) / 2;
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    this.overlay.width = Math.round(box.width * ratio);
    this.overlay.height = Math.round(box.height * ratio);
    this.home = this.fitting(1).scale;
    this.style();
    return this.plot.set({}); // applies the size and draws again
  }

  // ---- the look of points ----

  // Colors by code. Rows that are not shown have the last color and are drawn below the others; codes from `older` on are
  // drawn below the codes before, and rows that are `absent` not at all.
  async color(codes, colors, faint, { older = null, absent = null } = {}) {
    this.colors = [...colors, faint];
    this.style();
    const last = colors.length;
    const { n, order, ordered, shown, points } = this;
    const layerOf = (row) => (!shown[row] ? 0 : older !== null && codes[row] >= older ? 1 : 2);
    const sizes = [0, 0, 0];
    for (let i = 0; i < n; i++) if (!absent?.(i)) sizes[layerOf(i)]++;
    this.above = sizes[1] + sizes[2];
    this.faded = sizes[0] > 0;
    const at = [0, sizes[0], sizes[0] + sizes[1]];
    ordered.length = sizes[0] + this.above;
    for (let i = 0; i < n; i++) {
      const row = order[i];
      if (absent?.(row)) continue;
      const point = points[row];
      point[2] = shown[row] ? codes[row] : last;
      ordered[at[layerOf(row)]++] = point;
    }
    // One drawing at a time; changes made in the meantime are in the next one.
    if (this.drawing) {
      this.waiting = true;
      return this.drawing;
    }
    this.drawing = (async () => {
      do {
        this.waiting = false;
        await this.plot.draw(ordered, { spatialIndex: NO_INDEX, zDataType: 'categorical', preventFilterReset: true });
      } while (this.waiting);
      this.drawing = null;
    })();
    return this.drawing;
  }

  // Size and opacity depend on the number of points and on the zoom.
  style() {
    if (!this.colors || !this.height) return;
    // Next to one another, all dots would cover a sixth of the map's bounding box.
    const unit = (this.home * this.height) / 2;
    const largest = Math.max(6, 12 - 2 * Math.log10(this.n));
    const size = Math.min(largest, Math.max(1.2, Math.sqrt((4 * this.roomy[0] * this.roomy[1] * unit * unit) / 6 / this.n)));
    const dense = Math.min(0.85, Math.max(0.45, 1.25 - 0.13 * Math.log10(this.n)));
    const opacity = Math.min(0.95, dense + 0.1 * Math.max(0, Math.log2(this.zoom || 1))) * (this.behind ? 0.45 : 1);
    // regl-scatterplot scales points by its own zoom, which is not 1 at the start: divide by that.
    const scaling = Math.max(this.home || 1, 0.01);
    const begin = scaling > 1 ? Math.asinh(scaling) / Math.asinh(1) : scaling;
    this.size = size;
    const shadow = !this.faded ? opacity : opacity * Math.min(0.5, Math.max(0.12, 60 / Math.sqrt(this.n)));
    const opacities = this.colors.map((_, i) => (i === this.colors.length - 1 ? shadow : opacity));
    const said = JSON.stringify([size / begin, opacity.toFixed(2), shadow.toFixed(3), this.colors]);
    if (said === this.styled) return;
    this.styled = said;
    this.plot.set({ pointColor: this.colors, pointSize: size / begin, opacity: opacities });
  }

  // Dims the map when new rows are drawn over it.
  stepBack(behind) {
    this.behind = behind;
    this.style();
  }

  theme(ink) {
    this.plot.set({ lassoColor: ink });
  }

  // ---- the view ----

  fitting(margin, box = { x: -this.roomy[0], y: -this.roomy[1], width: 2 * this.roomy[0], height: 2 * this.roomy[1] }) {
    const { top, right, bottom, left } = this.insets;
    const free = [Math.max(80, this.width - left - right), Math.max(80, this.height - top - bottom)];
    const size = [Math.max(box.width, 1e-4) * margin, Math.max(box.height, 1e-4) * margin];
    const unit = Math.min(free[0] / size[0], free[1] / size[1]); // pixels per unit
    return {
      scale: (unit * 2) / this.height,
      x: box.x + box.width / 2 - (left - right) / 2 / unit,
      y: box.y + box.height / 2 + (top - bottom) / 2 / unit,
    };
  }

  // Shows a box of the scene, or the whole map.
  look(box, animate = true, margin = 1.04) {
    const { x, y, scale } = this.fitting(margin, box);
    const distance = Math.max(1 / scale, 1 / (MAX_ZOOM * this.home));
    const height = 2 * distance;
    const width = (height * this.width) / this.height;
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    return this.plot.zoomToArea(
      { x: x - width / 2, y: y - height / 2, width, height },
      animate && !still ? { transition: true, transitionDuration: 450, transitionEasing: 'cubicInOut' } : {},
    );
  }

  // Whether one sees the whole map, as `look` shows it.
  get isHome() {
    if (!this.height) return true;
    const { x, y, scale } = this.fitting(1.04);
    const [left, top] = this.toScreen(x, y);
    const [across, down] = [left - this.width / 2, top - this.height / 2];
    return Math.abs(this.camera.view[0] / scale - 1) < 0.02 && Math.hypot(across, down) < 4;
  }

  // How much of the map fits the shorter side of the window, in its own units.
  get span() {
    return ((Math.min(this.width, this.height) / this.unit) * this.extent) / 2;
  }

  // Shows the map around a position, both in map coordinates.
  lookFrom(x, y, span) {
    const [left, top] = this.fromMap(x, y);
    const whole = 2 / this.home; // the height of the view at home
    const wanted = ((2 * span) / this.extent) * Math.max(1, this.height / this.width);
    const height = Math.min(whole / MIN_ZOOM, Math.max(whole / MAX_ZOOM, wanted));
    const width = (height * this.width) / this.height;
    // A transition, if a short one, replaces one under way, which would otherwise go on to its own end.
    return this.plot.zoomToArea({ x: left - width / 2, y: top - height / 2, width, height }, { transition: true, transitionDuration: 1 });
  }

  // Moves a row to the middle of a part of the screen.
  panTo(row, { left, top, right, bottom }) {
    const [x, y] = this.toScreen(this.x[row], this.y[row]);
    this.panBy((left + right) / 2 - x, (top + bottom) / 2 - y);
  }

  panBy(left, top) {
    this.camera.pan([(2 * left) / this.height, (-2 * top) / this.height]);
    this.plot.view(this.camera.view);
  }

  zoomBy(factor, left = this.width / 2, top = this.height / 2) {
    const { zoom } = this;
    factor = Math.min(MAX_ZOOM / zoom, Math.max(MIN_ZOOM / zoom, factor));
    this.camera.scale(factor, [((left - this.width / 2) * 2) / this.height, ((this.height / 2 - top) * 2) / this.height]);
    this.plot.view(this.camera.view);
  }

  moved() {
    if (this.zoom > 1.01 * MAX_ZOOM || this.zoom < 0.99 * MIN_ZOOM) this.zoomBy(1); // the wheel has no limits of its own
    this.style();
    this.tell('view');
  }

  paint() {
    const context = this.overlay.getContext('2d');
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.tell('paint', context);
  }

  redraw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  // ---- the pointer ----

  mode(name) {
    this.tool = name;
    this.plot.set({
      mouseMode: name === 'pan' ? 'panZoom' : 'lasso',
      lassoType: name === 'box' ? 'rectangle' : 'lasso',
    });
  }

  lassoed(coordinates) {
    // regl-scatterplot skips moves in quick succession, even the last one.
    const [from, to] = [this.fromScreen(...this.pressed), this.fromScreen(...this.released)];
    const corners =
      this.tool === 'box' ? [from, [from[0], to[1]], to, [to[0], from[1]]] : [from, ...coordinates.slice(1), to];
    this.tell('lasso', coordinates.length > 2 ? this.grid.inside(corners, this.shown) : []);
  }

  listen() {
    const { canvas } = this;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.pressed = this.released = [0, 0];
    addEventListener('mouseup', (event) => (this.released = at(event)), true);
    canvas.addEventListener('mousemove', (event) => {
      if (event.buttons) return this.tell('hover', null);
      this.tell('hover', at(event));
    });
    canvas.addEventListener('mouseleave', () => this.tell('hover', null));
    canvas.addEventListener('mousedown', (event) => {
      this.pressed = at(event);
      this.tell('hover', null);
    });
    canvas.addEventListener('click', (event) => {
      const [left, top] = at(event);
      if (Math.hypot(left - this.pressed[0], top - this.pressed[1]) < 4) this.tell('tap', [left, top]);
    });
    canvas.addEventListener('dblclick', (event) => {
      this.zoomBy(2, ...at(event));
    });
    this.touch(at);
  }

  // Touch: one finger pans or draws the lasso; two fingers zoom.
  touch(at) {
    const { canvas } = this;
    const fingers = new Map();
    const asMouse = (type, event) =>
      (type === 'mousedown' ? canvas : window).dispatchEvent(
        new MouseEvent(type, {
          clientX: event.clientX,
          clientY: event.clientY,
          buttons: type === 'mouseup' ? 0 : 1,
          bubbles: true,
        }),
      );
    canvas.addEventListener('pointerdown', (event) => {
      if (event.pointerType === 'mouse') return;
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, at(event));
      if (fingers.size === 1 && this.tool !== 'pan') {
        asMouse('mousemove', event);
        asMouse('mousedown', event);
      }
    });
    canvas.addEventListener('pointermove', (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const now = at(event);
      if (fingers.size === 2) {
        const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, position]) => position);
        const distance = (position) => Math.hypot(position[0] - other[0], position[1] - other[1]);
        this.panBy((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
        this.zoomBy(distance(now) / Math.max(1, distance(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      } else if (this.tool === 'pan') {
        this.panBy(now[0] - before[0], now[1] - before[1]);
      } else {
        asMouse('mousemove', event);
      }
      fingers.set(event.pointerId, now);
    });
    const up = (event) => {
      if (fingers.delete(event.pointerId) && this.tool !== 'pan') asMouse('mouseup', event);
    };
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', up);
  }
}

// A random order, the same each time.
function shuffled(n) {
  const order = new Uint32Array(n);
  let state = 1;
  for (let i = 0; i < n; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    order[i] = order[j];
    order[j] = i;
  }
  return order;
}
