// How rows are compared: the counterpart of metric/ in Python.

// Rows that can be compared, each `width` numbers long: at unit length for the cosine and the correlation. A row that
// cannot be compared is passed to `refuse`, with the rest of a sentence.
export function comparedRows(rows, width, count, metric, refuse) {
  if (metric !== 'cosine' && metric !== 'correlation' && metric !== 'jaccard') return rows;
  const found = Float64Array.from(rows);
  for (let row = 0; row < count; row++) {
    const values = found.subarray(row * width, (row + 1) * width);
    if (metric === 'jaccard') {
      const column = values.findIndex((value) => value !== 0 && value !== 1);
      if (column >= 0) {
        refuse(
          row,
          `holds ${values[column]} in column ${column} (counted from 0), but metric='jaccard' compares booleans: pass X != 0 to compare which values are there, or choose another metric.`,
        );
      }
    } else if (!toUnitLength(values, metric)) {
      const what = metric === 'cosine' ? 'all zeros' : 'constant';
      refuse(
        row,
        `is ${what}, so it has no direction, which metric='${metric}' compares: leave such rows out, or choose another metric.`,
      );
    }
  }
  return found;
}

// Changes a row in place; false if it has no direction.
function toUnitLength(values, metric) {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  if (largest === 0) return false;
  for (let i = 0; i < values.length; i++) values[i] /= largest;
  if (metric === 'correlation') {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    let spread = 0;
    for (let i = 0; i < values.length; i++) {
      values[i] -= mean;
      spread = Math.max(spread, Math.abs(values[i]));
    }
    if (spread <= 8 * Number.EPSILON) return false;
  }
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  for (let i = 0; i < values.length; i++) values[i] /= length;
  return true;
}

// The distances of the metrics that compare features, from an input to the exemplar whose inputs begin at `from`. They are
// rounded as in Python, so that distances that tie there tie here.
const LENGTHS = {
  manhattan(input, inputs, from) {
    let sum = 0;
    for (let i = 0; i < input.length; i++) sum += Math.abs(input[i] - inputs[from + i]);
    return sum;
  },
  hamming(input, inputs, from) {
    let differing = 0;
    for (let i = 0; i < input.length; i++) if (input[i] !== inputs[from + i]) differing++;
    return differing / input.length;
  },
  jaccard(input, inputs, from) {
    let [both, either] = [0, 0];
    for (let i = 0; i < input.length; i++) {
      const [here, there] = [input[i] !== 0, inputs[from + i] !== 0];
      if (here && there) both++;
      if (here || there) either++;
    }
    return either ? 1 - Math.fround(both / either) : 0;
  },
};

export const comparesFeatures = (metric) => metric in LENGTHS;

// The k exemplars nearest to an input, by all distances.
export function nearestOfAll(input, inputs, n, k, metric) {
  const squared = Float64Array.from({ length: n }, (_, i) => {
    const apart = Math.fround(LENGTHS[metric](input, inputs, i * input.length));
    return Math.fround(apart * apart);
  });
  const indices = smallest(n, k, (i) => squared[i]);
  return { indices, squared: indices.map((i) => squared[i]) };
}

// The numbers below n of the k smallest sizes, the smallest first; of equal sizes, the first.
export function smallest(n, k, sizeOf) {
  const found = [];
  const sizes = [];
  for (let i = 0; i < n; i++) {
    const size = sizeOf(i);
    if (found.length === k && size >= sizes[k - 1]) continue;
    let at = Math.min(found.length, k - 1);
    while (at > 0 && sizes[at - 1] > size) {
      sizes[at] = sizes[at - 1];
      found[at] = found[at - 1];
      at--;
    }
    sizes[at] = size;
    found[at] = i;
  }
  return found;
}
