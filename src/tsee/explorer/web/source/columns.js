// The columns of the map's rows: their values, their counts, and the rows in which a word occurs.

export function columnsOf(data) {
  return data.columns.map((column) => {
    const values = data.arrays[column.values];
    if (column.kind === 'text') return textColumn(column, values, data.arrays[column.lengths]);
    return column.kind === 'category' ? categoryColumn(column, values) : numberColumn(column, values);
  });
}

function categoryColumn({ name, names }, codes) {
  const counts = new Array(names.length + 1).fill(0);
  for (let i = 0; i < codes.length; i++) counts[codes[i]]++;
  const missing = counts.pop();
  return {
    name,
    kind: 'category',
    names,
    codes,
    counts,
    missing,
    text: (row) => (codes[row] < names.length ? names[codes[row]] : ''),
    search(word, found) {
      const hit = names.map((own) => own.toLowerCase().includes(word));
      if (hit.some(Boolean)) for (let i = 0; i < codes.length; i++) if (hit[codes[i]]) found[i] = 1;
    },
  };
}

function numberColumn({ name }, values) {
  let range = null;
  return {
    name,
    kind: 'number',
    values,
    get range() {
      return (range ??= rangeOf(values));
    },
    text: (row) => (Number.isNaN(values[row]) ? '' : plain(values[row])),
    search() {},
  };
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

// A number without the digits that single precision adds.
export function plain(value) {
  if (Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(7)));
}

// A number of a scale: whole numbers in full, others with four digits.
export const short = (value) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4))));

export const counted = (n) => n.toLocaleString('en-US');
export const many = (n, one, more = one + 's') => `${counted(n)} ${n === 1 ? one : more}`;
