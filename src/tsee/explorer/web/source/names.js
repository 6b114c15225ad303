// Names on the map: of the islands of each category and, the farther in, of smaller and smaller parts.

import { mixed } from './colors.js';

const MIN_POINTS_UNDER_NAME = 40;

// Names of parts, as the page was given them. Level 0 is the coarsest.
export function topicsOf(data, scene) {
  return (data.topics || []).map(([level, x, y, count, name, column]) => ({
    level,
    name,
    count,
    column,
    x: x * 2 - scene.half[0],
    y: y * 2 - scene.half[1],
  }));
}

// How far in one sees the names of a level: each level is twice as fine as the one before.
export function levelsAt(zoom, coarsest) {
  const deep = Math.log2(Math.max(1, zoom)) + coarsest;
  return [deep - 1.6, deep + 0.35];
}

// Draws as many names as have room. `blocked` are boxes in which there is none.
export function paintNames(context, scene, { islands, topics, colored, named }, colors, only, look, blocked) {
  const taken = blocked.map(({ left, top, right, bottom }) => [left, top, right, bottom]);
  const base = scene.width < 640 ? 13 : 15;
  const kinds = new Set(islands.map((island) => island.code)).size;
  const size = Math.max(10.5, base - kinds / 25);
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.lineJoin = 'round';
  const drawn = [];
  for (const { name, code, count, x, y } of islands) {
    if (only.size && !only.has(code)) continue;
    const up = count < MIN_POINTS_UNDER_NAME ? size : 0; // above the points if there are few
    write(name, x, y, up, `600 ${size}px ${look.font}`, size, mixed(colors[code], look.ink, 0.55));
  }
  if (named) {
    const [from, to] = levelsAt(scene.zoom, islands.length ? 0 : 0.75);
    const said = new Set(islands.map((island) => island.name.toLowerCase()));
    for (const { level, name, column, x, y } of topics) {
      if (level < from || level > to || column === colored || said.has(name.toLowerCase())) continue;
      const small = Math.max(11, base - 2 - level * 0.4);
      write(name, x, y, islands.length ? -size * 0.9 : 0, `${level ? 500 : 600} ${small}px ${look.font}`, small, mixed(look.ink, look.ground, level ? 0.18 : 0));
    }
  }
  return drawn;

  function write(name, x, y, up, font, height, color) {
    const [at, middle] = scene.toScreen(x, y);
    const top = middle - up;
    if (at < 0 || top < 0 || at > scene.width || top > scene.height) return;
    const text = name.length > 34 ? name.slice(0, 33) + '…' : name;
    context.font = font;
    const half = context.measureText(text).width / 2 + 5;
    const left = Math.min(Math.max(at, half), scene.width - half);
    const box = [left - half, top - height * 0.75, left + half, top + height * 0.75];
    if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) return;
    taken.push(box);
    drawn.push({ name, box });
    context.globalAlpha = 0.92;
    context.strokeStyle = look.ground;
    context.lineWidth = 4;
    context.strokeText(text, left, top);
    context.globalAlpha = 1;
    context.fillStyle = color;
    context.fillText(text, left, top);
  }
}
