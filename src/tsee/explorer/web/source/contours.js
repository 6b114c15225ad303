// Lines of equal density, for maps of so many points that dots hide how many they are.

export const MIN_POINTS = 20_000;
const CELLS = 160;
const LEVELS = [0.04, 0.12, 0.28, 0.55];

// Lines by level, each [x0, y0, x1, y1, ...] in the scene, of the points that are shown.
export function contours(x, y, shown) {
  const side = CELLS + 8; // a margin, so that lines close
  const density = new Float32Array(side * side);
  const at = (value) => ((value + 1) / 2) * CELLS + 3.5;
  for (let i = 0; i < x.length; i++) {
    if (shown[i]) density[Math.round(at(y[i])) * side + Math.round(at(x[i]))]++;
  }
  blur(density, side);
  // The scale is the density that the densest hundredth of the points exceeds: a single peak should not set it.
  const known = density.filter((value) => value > 0).sort();
  const top = known[Math.floor(known.length * 0.98)] || 1;
  const back = (value) => ((value - 3.5) / CELLS) * 2 - 1;
  return LEVELS.map((share) => crossings(density, side, share * top).map((line) => Float32Array.from(line, back)));
}

function blur(values, side) {
  const weights = [0.06, 0.24, 0.4, 0.24, 0.06];
  const line = new Float32Array(side);
  for (let pass = 0; pass < 4; pass++) {
    for (const [step, stride] of [[1, side], [side, 1]]) {
      for (let row = 0; row < side; row++) {
        const start = row * stride;
        for (let i = 0; i < side; i++) {
          let sum = 0;
          for (let j = -2; j <= 2; j++) sum += weights[j + 2] * (values[start + Math.min(side - 1, Math.max(0, i + j)) * step] || 0);
          line[i] = sum;
        }
        for (let i = 0; i < side; i++) values[start + i * step] = line[i];
      }
    }
  }
}

// Marching squares: the level is crossed on edges of cells, and in each cell lines go from crossing to crossing. Returns
// lines through many cells, since a canvas is slow to draw many short ones.
function crossings(values, side, level) {
  const places = new Map(); // by edge
  const next = new Map(); // the edges that an edge is connected with
  const cross = (edge, x0, y0, x1, y1) => {
    const [a, b] = [values[y0 * side + x0], values[y1 * side + x1]];
    if (a < level === b < level) return -1;
    const t = (level - a) / (b - a);
    places.set(edge, [x0 + t * (x1 - x0), y0 + t * (y1 - y0)]);
    return edge;
  };
  const connect = (from, to) => {
    if (next.has(from)) next.get(from).push(to);
    else next.set(from, [to]);
  };
  for (let row = 0; row < side - 1; row++) {
    for (let column = 0; column < side - 1; column++) {
      const at = row * side + column;
      const cuts = [
        cross(2 * at, column, row, column + 1, row),
        cross(2 * (at + 1) + 1, column + 1, row, column + 1, row + 1),
        cross(2 * (at + side), column, row + 1, column + 1, row + 1),
        cross(2 * at + 1, column, row, column, row + 1),
      ].filter((edge) => edge >= 0);
      for (let i = 0; i + 1 < cuts.length; i += 2) {
        connect(cuts[i], cuts[i + 1]);
        connect(cuts[i + 1], cuts[i]);
      }
    }
  }
  const lines = [];
  for (const start of places.keys()) {
    const line = [];
    for (let at = start; at !== undefined; ) {
      line.push(...places.get(at));
      const to = next.get(at)?.pop();
      if (to !== undefined) {
        const back = next.get(to);
        back.splice(back.indexOf(at), 1);
      }
      at = to;
    }
    if (line.length > 2) lines.push(line);
  }
  return lines;
}

export function paintContours(context, scene, lines, look) {
  context.strokeStyle = look.ink;
  context.lineWidth = 1;
  lines.forEach((level, rank) => {
    context.beginPath();
    for (const line of level) {
      for (let i = 0; i < line.length; i += 2) {
        const [left, top] = scene.toScreen(line[i], line[i + 1]);
        if (i) context.lineTo(left, top);
        else context.moveTo(left, top);
      }
    }
    context.globalAlpha = 0.16 + 0.09 * rank;
    context.stroke();
  });
  context.globalAlpha = 1;
}
