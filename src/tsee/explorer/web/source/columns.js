// The columns of the map's rows: their values, their counts, and the rows in which a word occurs.

export function columnsOf(data) {
  const columns = data.columns.map((column) => {
    const values = data.arrays[column.values];
    if (column.kind === 'text') return textColumn(column, values, data.arrays[column.lengths]);
    return column.kind === 'category' ? categoryColumn(column, values) : numberColumn(column, values);
  });
  columns.forEach((column, index) => (column.index = index));
  return columns;
}

// What the page knows of positions, as columns that can color the points, but are not part of the data.
export function trustColumns(data) {
  if (!data.trust) return [];
  const columns = [];
  const { kept, strayed } = data.arrays;
  const { neighbors } = data.trust;
  columns.push({ ...numberColumn({ name: 'Neighbors kept (%)' }, Float32Array.from(kept, (n) => (100 * n) / neighbors)), own: true });
  if (strayed) {
    const share = Float32Array.from(strayed, (n) => (100 * n) / 65535);
    columns.push({ ...numberColumn({ name: 'Moved from the network’s position (%)' }, share), own: true });
  }
  return columns;
}

function categoryColumn({ name, names }, codes) {
  const counts = new Array(names.length + 1).fill(0);
  for (let i = 0; i < codes.length; i++) counts[codes[i]]++;
  const missing = counts.pop();
  const text = (row) => (codes[row] < names.length ? names[codes[row]] : '');
  return {
    name,
    kind: 'category',
    names,
    codes,
    counts,
    missing,
    text,
    raw: text,
    search(word, found) {
      const hit = names.map((own) => own.toLowerCase().includes(word));
      if (hit.some(Boolean)) for (let i = 0; i < codes.length; i++) if (hit[codes[i]]) found[i] = 1;
    },
  };
}

function numberColumn({ name, date }, values) {
  let range = null;
  const shown = date ? (value) => dateText(value, date) : short;
  return {
    name,
    kind: 'number',
    date,
    values,
    get range() {
      return (range ??= rangeOf(values));
    },
    short: shown,
    // A number or a date that was typed; NaN if it is neither.
    parse: (text) => (text.trim() === '' ? NaN : date ? Date.parse(/^\d{4}$/.test(text.trim()) ? `${text.trim()}-01-01` : `${text.trim().replace(' ', 'T')}${text.includes(':') ? 'Z' : ''}`) : Number(text.replaceAll(',', ''))),
    text: (row) => (Number.isNaN(values[row]) ? '' : shown(values[row])),
    raw: (row) => (Number.isNaN(values[row]) ? '' : date ? dateText(values[row], date) : plain(values[row])),
    search(word, found) {
      if (date) for (let i = 0; i < values.length; i++) if (!Number.isNaN(values[i]) && shown(values[i]).includes(word)) found[i] = 1;
    },
  };
}

function dateText(value, date) {
  const text = new Date(value).toISOString();
  return date === 'day' ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

function rangeOf(values) {
  const known = values.filter(Number.isFinite).sort();
  const at = (share) => known[Math.round(share * (known.length - 1))];
  const [least, most] = known.length ? [at(0), at(1)] : [0, 1];
  // The lowest and the highest 1 % share a color each: otherwise a few extremes would leave one color for all others.
  let [low, high] = known.length ? [at(0.01), at(0.99)] : [0, 1];
  if (!(high > low)) [low, high] = [least, most];
  if (!(high > low)) high = low + 1;
  return { low, high, least, most, missing: values.length - known.length };
}

function textColumn({ name }, bytes, lengths) {
  const all = new TextDecoder().decode(bytes);
  const starts = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) starts[i + 1] = starts[i] + lengths[i];
  const text = (row) => all.slice(starts[row], starts[row + 1]);
  let lower = null;
  return {
    name,
    kind: 'text',
    text,
    raw: text,
    search(word, found) {
      lower ??= all.toLowerCase();
      if (lower.length !== all.length) {
        // Some letters become longer in lower case, which shifts the letters after them.
        for (let i = 0; i < lengths.length; i++) if (text(i).toLowerCase().includes(word)) found[i] = 1;
        return;
      }
      for (let at = lower.indexOf(word); at >= 0; ) {
        const row = rowAt(starts, at);
        if (at + word.length <= starts[row + 1]) {
          found[row] = 1;
          at = lower.indexOf(word, starts[row + 1]);
        } else {
          at = lower.indexOf(word, at + 1);
        }
      }
    },
  };
}

function rowAt(starts, position) {
  let low = 0;
  let high = starts.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

// The words of a search. Those between quotation marks are one.
export function wordsOf(text) {
  const words = [];
  const rest = text.toLowerCase().replace(/"([^"]+)"/g, (_, phrase) => {
    if (phrase.trim()) words.push(phrase.trim());
    return ' ';
  });
  return [...words, ...rest.split(/\s+/).filter(Boolean)];
}

// 1 for rows in which every word occurs, each in any column; null without words.
export function searched(columns, text, n) {
  const words = wordsOf(text);
  if (!words.length) return null;
  const all = new Uint8Array(n).fill(1);
  for (const word of words) {
    const found = new Uint8Array(n);
    for (const column of columns) column.search(word, found);
    for (let i = 0; i < n; i++) all[i] &= found[i];
  }
  return all;
}

// A number without the digits that single precision adds.
export function plain(value) {
  if (Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(7)));
}

// A number to read: whole numbers in full, others with four digits.
export const short = (value) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4))));

export const counted = (n) => n.toLocaleString('en-US');
export const many = (n, one, more = one + 's') => `${counted(n)} ${n === 1 ? one : more}`;
export const percent = (share) => `${share > 0 && share < 0.01 ? '<1' : share < 1 && share > 0.99 ? '>99' : Math.round(100 * share)} %`;
