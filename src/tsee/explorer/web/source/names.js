// Names of the categories on the map, each where most of its points are.

import { mixed } from './colors.js';

const CELLS = 48;
const MAX_NAMES = 150;
const MIN_POINTS_UNDER_NAME = 40;

// For each category, the position of its densest part.
export function anchors(column, x, y) {
  const { codes, names } = column;
  if (names.length > MAX_NAMES) return [];
  const counts = names.map(() => new Float32Array(CELLS * CELLS));
  const cell = (value) => Math.min(CELLS - 1, Math.max(0, Math.floor(((value + 1) / 2) * CELLS)));
  for (let i = 0; i < codes.length; i++) {
    if (codes[i] < names.length) counts[codes[i]][cell(y[i]) * CELLS + cell(x[i])]++;
  }
  const best = counts.map((own) => peak(own));
  // The mean of the points around the peak instead of the center of a cell.
  const sums = names.map(() => [0, 0, 0]);
  const near = 2.5 * (2 / CELLS);
  for (let i = 0; i < codes.length; i++) {
    const middle = best[codes[i]];
    if (!middle || Math.abs(x[i] - middle[0]) > near || Math.abs(y[i] - middle[1]) > near) continue;
    const sum = sums[codes[i]];
    sum[0] += x[i];
    sum[1] += y[i];
    sum[2]++;
  }
  return names
    .map((name, code) => ({ name, code, count: column.counts[code], x: sums[code][0] / sums[code][2], y: sums[code][1] / sums[code][2] }))
    .filter((anchor) => Number.isFinite(anchor.x) && anchor.name.trim())
    .sort((a, b) => b.count - a.count);
}

// The center of the cell around which there are most points, weighted by nearness.
function peak(counts) {
  let most = 0;
  let best = null;
  for (let row = 0; row < CELLS; row++) {
    for (let column = 0; column < CELLS; column++) {
      if (!counts[row * CELLS + column]) continue;
      let sum = 0;
      for (let down = -2; down <= 2; down++) {
        for (let right = -2; right <= 2; right++) {
          const r = row + down;
          const c = column + right;
          if (r < 0 || c < 0 || r >= CELLS || c >= CELLS) continue;
          sum += counts[r * CELLS + c] / (1 + down * down + right * right);
        }
      }
      if (sum > most) {
        most = sum;
        best = [((column + 0.5) / CELLS) * 2 - 1, ((row + 0.5) / CELLS) * 2 - 1];
      }
    }
  }
  return best;
}

export function paintNames(context, scene, list, colors, only, look) {
  const taken = [];
  const size = Math.max(10.5, (scene.width < 640 ? 13 : 15) - list.length / 25);
  context.font = `600 ${size}px ${look.font}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.lineJoin = 'round';
  for (const { name, code, count, x, y } of list) {
    if (only.size && !only.has(code)) continue;
    const [at, middle] = scene.toScreen(x, y);
    const top = middle - (count < MIN_POINTS_UNDER_NAME ? size : 0); // above the points if there are few
    if (at < 0 || top < -20 || at > scene.width || top > scene.height + 20) continue;
    const text = name.length > 26 ? name.slice(0, 25) + '…' : name;
    const half = context.measureText(text).width / 2 + 5;
    const left = Math.min(Math.max(at, half), scene.width - half);
    const box = [left - half, top - size * 0.75, left + half, top + size * 0.75];
    if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
    taken.push(box);
    context.globalAlpha = 0.92;
    context.strokeStyle = look.ground;
    context.lineWidth = 4;
    context.strokeText(text, left, top);
    context.globalAlpha = 1;
    context.fillStyle = mixed(colors[code], look.ink, 0.55);
    context.fillText(text, left, top);
  }
}
