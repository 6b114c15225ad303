// Lines of equal density, for maps of so many points that dots hide how many they are.

export const MIN_POINTS = 20_000;
const CELLS = 160;
const LEVELS = [0.04, 0.12, 0.28, 0.55];

// Line segments by level, [x0, y0, x1, y1, ...] in the scene, of the points that are shown.
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
  return LEVELS.map((share) => Float32Array.from(crossings(density, side, share * top), back));
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

// Marching squares: in each cell, the lines between the edges that cross the level.
function crossings(values, side, level) {
  const lines = [];
  for (let row = 0; row < side - 1; row++) {
    for (let column = 0; column < side - 1; column++) {
      const at = row * side + column;
      const corners = [values[at], values[at + 1], values[at + side + 1], values[at + side]];
      const places = [[column, row], [column + 1, row], [column + 1, row + 1], [column, row + 1]];
      const cuts = [];
      for (let edge = 0; edge < 4; edge++) {
        const [a, b] = [corners[edge], corners[(edge + 1) % 4]];
        if (a < level === b < level) continue;
        const t = (level - a) / (b - a);
        const [from, to] = [places[edge], places[(edge + 1) % 4]];
        cuts.push([from[0] + t * (to[0] - from[0]), from[1] + t * (to[1] - from[1])]);
      }
      for (let i = 0; i + 1 < cuts.length; i += 2) lines.push(...cuts[i], ...cuts[i + 1]);
    }
  }
  return lines;
}

export function paintContours(context, scene, lines, look) {
  context.strokeStyle = look.ink;
  context.lineWidth = 1;
  lines.forEach((line, level) => {
    context.beginPath();
    for (let i = 0; i < line.length; i += 4) {
      const [a, b] = scene.toScreen(line[i], line[i + 1]);
      const [c, d] = scene.toScreen(line[i + 2], line[i + 3]);
      if (Math.max(a, c) < 0 || Math.max(b, d) < 0 || Math.min(a, c) > scene.width || Math.min(b, d) > scene.height) continue;
      context.moveTo(a, b);
      context.lineTo(c, d);
    }
    context.globalAlpha = 0.16 + 0.09 * level;
    context.stroke();
  });
  context.globalAlpha = 1;
}
