// The islands of each category: the connected parts of the map where its points are.

const CELLS = 64;
const MAX_NAMES = 150;
// A smaller part is named if it has at least this share of its category's points, and this many.
const MIN_SHARE = 0.08;
const MIN_POINTS = 6;
// The middle of more points than this is the middle of some of them.
const MAX_SAMPLE = 3000;
// A name stands where at least this share of the points are of its category.
const MIN_COMMON = 0.4;

// For each island, its category, its number of points, and its densest position.
export function islands(column, x, y) {
  const { codes, names } = column;
  if (names.length > MAX_NAMES) return [];
  const cell = (value) => Math.min(CELLS - 1, Math.max(0, Math.floor(((value + 1) / 2) * CELLS)));
  const rows = names.map(() => []);
  for (let i = 0; i < codes.length; i++) if (codes[i] < names.length) rows[codes[i]].push(i);
  const total = new Float32Array(CELLS * CELLS);
  for (let i = 0; i < codes.length; i++) total[cell(y[i]) * CELLS + cell(x[i])]++;
  // Where other categories are as frequent, a name would be wrong about most points.
  const common = (counts, left, top) => {
    let [own, all] = [0, 0];
    for (let r = Math.max(0, cell(top) - 1); r <= Math.min(CELLS - 1, cell(top) + 1); r++) {
      for (let c = Math.max(0, cell(left) - 1); c <= Math.min(CELLS - 1, cell(left) + 1); c++) {
        own += counts[r * CELLS + c];
        all += total[r * CELLS + c];
      }
    }
    return own >= MIN_COMMON * all;
  };
  const found = [];
  names.forEach((name, code) => {
    const own = rows[code];
    if (!own.length || !name.trim()) return;
    const counts = new Float32Array(CELLS * CELLS);
    for (const i of own) counts[cell(y[i]) * CELLS + cell(x[i])]++;
    const parts = connected(counts);
    const sums = new Map();
    for (const i of own) {
      const part = parts[cell(y[i]) * CELLS + cell(x[i])];
      if (!sums.has(part)) sums.set(part, []);
      sums.get(part).push(i);
    }
    const ordered = [...sums.values()].sort((a, b) => b.length - a.length);
    ordered.forEach((members, rank) => {
      if (rank && (members.length < MIN_POINTS || members.length < MIN_SHARE * own.length)) return;
      const [left, top] = middle(members, x, y);
      if (common(counts, left, top)) found.push({ name, code, count: members.length, x: left, y: top });
    });
  });
  return found.sort((a, b) => b.count - a.count);
}

// Cells with points are connected if at most one empty cell is between them.
function connected(counts) {
  const parts = new Int32Array(CELLS * CELLS).fill(-1);
  let next = 0;
  for (let start = 0; start < counts.length; start++) {
    if (!counts[start] || parts[start] >= 0) continue;
    const stack = [start];
    parts[start] = next;
    while (stack.length) {
      const at = stack.pop();
      const row = Math.floor(at / CELLS);
      const column = at % CELLS;
      for (let down = -2; down <= 2; down++) {
        for (let right = -2; right <= 2; right++) {
          const r = row + down;
          const c = column + right;
          if (r < 0 || c < 0 || r >= CELLS || c >= CELLS) continue;
          const other = r * CELLS + c;
          if (!counts[other] || parts[other] >= 0) continue;
          parts[other] = next;
          stack.push(other);
        }
      }
    }
    next++;
  }
  return parts;
}

// The middle of the points that are nearest to the middle: an island can be curved.
function middle(rows, x, y) {
  const step = Math.max(1, Math.floor(rows.length / MAX_SAMPLE));
  let near = step > 1 ? rows.filter((_, at) => at % step === 0) : rows;
  for (let round = 0; round < 3; round++) {
    const a = median(near.map((i) => x[i]));
    const b = median(near.map((i) => y[i]));
    const distance = (i) => (x[i] - a) ** 2 + (y[i] - b) ** 2;
    near = near.length > 3 ? [...near].sort((i, j) => distance(i) - distance(j)).slice(0, Math.ceil(near.length / 2)) : near;
  }
  return [median(near.map((i) => x[i])), median(near.map((i) => y[i]))];
}

function median(values) {
  return Float32Array.from(values).sort()[values.length >> 1];
}
