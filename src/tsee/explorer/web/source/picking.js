// A grid of cells, which finds the points near a position or inside a polygon.

const MAX_SIDE = 512;

export class Grid {
  // x and y are within [-1, 1].
  constructor(x, y) {
    this.x = x;
    this.y = y;
    const n = x.length;
    this.side = Math.max(1, Math.min(MAX_SIDE, Math.ceil(Math.sqrt(n))));
    const cells = new Uint32Array(n);
    this.starts = new Uint32Array(this.side * this.side + 1);
    for (let i = 0; i < n; i++) {
      cells[i] = this.cell(y[i]) * this.side + this.cell(x[i]);
      this.starts[cells[i] + 1]++;
    }
    for (let c = 0; c < this.side * this.side; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice(0, -1);
    this.points = new Uint32Array(n);
    for (let i = 0; i < n; i++) this.points[next[cells[i]]++] = i;
  }

  cell(value) {
    return Math.min(this.side - 1, Math.max(0, Math.floor(((value + 1) / 2) * this.side)));
  }

  *within(x0, y0, x1, y1) {
    for (let row = this.cell(y0); row <= this.cell(y1); row++) {
      const from = this.starts[row * this.side + this.cell(x0)];
      const to = this.starts[row * this.side + this.cell(x1) + 1];
      for (let at = from; at < to; at++) yield this.points[at];
    }
  }

  // The nearest point within `radius` for which `wanted` is nonzero; -1 if there is none.
  nearest(x, y, radius, wanted) {
    let best = -1;
    let least = radius * radius;
    for (const i of this.within(x - radius, y - radius, x + radius, y + radius)) {
      if (!wanted[i]) continue;
      const squared = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
      if (squared <= least) {
        least = squared;
        best = i;
      }
    }
    return best;
  }

  // The `k` points nearest to a point, the nearest first.
  around(row, k) {
    const [x, y] = [this.x[row], this.y[row]];
    for (let radius = 2 / this.side; ; radius *= 2) {
      const near = [];
      for (const i of this.within(x - radius, y - radius, x + radius, y + radius)) {
        const squared = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
        if (i !== row && (squared <= radius * radius || radius > 3)) near.push([squared, i]);
      }
      if (near.length >= k || radius > 3) {
        return near.sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, k).map(([, i]) => i);
      }
    }
  }

  // The wanted points inside a polygon of [x, y] pairs.
  inside(polygon, wanted) {
    const xs = polygon.map((corner) => corner[0]);
    const ys = polygon.map((corner) => corner[1]);
    const found = [];
    for (const i of this.within(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys))) {
      if (wanted[i] && contains(xs, ys, this.x[i], this.y[i])) found.push(i);
    }
    return found;
  }
}

function contains(xs, ys, x, y) {
  let inside = false;
  for (let i = 0, j = xs.length - 1; i < xs.length; j = i++) {
    if (ys[i] > y !== ys[j] > y && x < ((xs[j] - xs[i]) * (y - ys[i])) / (ys[j] - ys[i]) + xs[i]) inside = !inside;
  }
  return inside;
}
