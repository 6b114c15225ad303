// What sets some rows apart from all others: values, numbers and words that are more frequent among them.

import { short } from './columns.js';

const MAX_LINES = 6;
const MAX_TEXTS = 4000;
const WORD = /[\p{L}][\p{L}\p{N}'’-]*[\p{L}\p{N}]/gu;

// Lines {column, what, here, elsewhere, score}, the most telling first. Shares are from 0 to 1; means are texts.
export function setApart(columns, rows, n) {
  if (rows.length === n || !rows.length) return [];
  const lines = columns.flatMap((column) => {
    if (column.kind === 'category') return values(column, rows, n);
    return column.kind === 'number' ? means(column, rows, n) : words(column, rows, n);
  });
  return lines.sort((a, b) => b.score - a.score).slice(0, MAX_LINES);
}

function values({ name, names, codes, counts }, rows, n) {
  const own = new Array(names.length + 1).fill(0);
  for (const row of rows) own[codes[row]]++;
  return names
    .map((what, code) => line(name, what, own[code], rows.length, counts[code] - own[code], n - rows.length, 0.05))
    .filter(Boolean);
}

function line(column, what, a, all, b, others, least) {
  const here = a / all;
  const elsewhere = b / Math.max(1, others);
  if (here < least || a < 2 || here < 1.5 * elsewhere) return null;
  const score = here * Math.log2(here / (elsewhere + 1 / (all + others)));
  return score > 0.1 ? { column, what, here, elsewhere, score } : null;
}

function means(column, rows, n) {
  const { name, values: all } = column;
  let [sum, squares, known, ownSum, own] = [0, 0, 0, 0, 0];
  for (let i = 0; i < n; i++) {
    if (!Number.isFinite(all[i])) continue;
    sum += all[i];
    squares += all[i] * all[i];
    known++;
  }
  for (const row of rows) {
    if (!Number.isFinite(all[row])) continue;
    ownSum += all[row];
    own++;
  }
  if (own < 2 || known - own < 2) return [];
  const spread = Math.sqrt(Math.max(0, squares / known - (sum / known) ** 2));
  const [here, elsewhere] = [ownSum / own, (sum - ownSum) / (known - own)];
  const effect = spread > 0 ? (here - elsewhere) / spread : 0;
  if (Math.abs(effect) < 0.4) return [];
  const shown = column.date ? column.short : short;
  return [{ column: name, what: effect > 0 ? 'higher' : 'lower', mean: [shown(here), shown(elsewhere)], score: Math.min(3, effect * effect) / 2 }];
}

function words(column, rows, n) {
  const inside = new Uint8Array(n);
  for (const row of rows) inside[row] = 1;
  const count = (chosen) => {
    const counts = new Map();
    for (const row of chosen) for (const word of new Set(column.text(row).toLowerCase().match(WORD) || [])) counts.set(word, (counts.get(word) || 0) + 1);
    return counts;
  };
  const here = spaced(rows, MAX_TEXTS);
  const others = [];
  const step = Math.max(1, Math.floor((n - rows.length) / MAX_TEXTS));
  for (let i = 0, seen = 0; i < n; i++) if (!inside[i] && seen++ % step === 0) others.push(i);
  const elsewhere = count(others);
  return [...count(here)]
    .filter(([word]) => word.length > 2)
    .map(([word, a]) => line(column.name, `“${word}”`, a, here.length, elsewhere.get(word) || 0, others.length, 0.1))
    .filter(Boolean)
    .sort((a, b) => b.score - a.score)
    .slice(0, 3);
}

function spaced(rows, most) {
  if (rows.length <= most) return rows;
  return Array.from({ length: most }, (_, i) => rows[Math.floor((i * rows.length) / most)]);
}
