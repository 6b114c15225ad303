// An encoder for each kind of column: the counterpart of tables/encoders.py. `encoderOf` gives { width, encode }, where
// encode(value, write) calls write(place, number) for what is not 0, and returns what is wrong with a value that it
// cannot take.

import { hashed } from './hashing.js';
import { booleanOf, dateOf, numberOf, tagsOf, textOf, words } from './values.js';

const FAR = 3;
const TEXT_DIMENSIONS = 64;
const N_GRAMS = [2, 3, 4];

function squashed(value, center, spread) {
  const scaled = (value - center) / spread;
  const far = Math.abs(scaled) - FAR;
  return far > 0 ? Math.sign(scaled) * (FAR + Math.log1p(far)) : scaled;
}

// Writes numbers by place at length 1.
function writeUnit(found, write) {
  let squares = 0;
  for (const value of found.values()) squares += value * value;
  const length = Math.max(Math.sqrt(squares), 1e-12);
  for (const [place, value] of found) write(place, value / length);
}

const KINDS = {
  number({ center, spread, unit }) {
    return {
      width: 1,
      encode(value, write) {
        const number = numberOf(value);
        if (number === null) return 'is not a number';
        write(0, spread ? squashed(number, center, spread) / unit : number - center);
      },
    };
  },

  boolean() {
    return {
      width: 1,
      encode(value, write) {
        const known = booleanOf(value);
        if (known === null) return 'is neither true nor false';
        write(0, Math.SQRT2 * known);
      },
    };
  },

  category({ categories, rare }) {
    const places = new Map(categories.map((name, place) => [name, place]));
    for (const name of rare) places.set(name, categories.length);
    const width = categories.length + (rare.length ? 1 : 0) + 1;
    return { width, encode: (value, write) => void write(places.get(textOf(value)) ?? width - 1, 1) };
  },

  date({ time: [center, spread, unit], periods }) {
    const factor = 1 / Math.sqrt(1 + periods.length);
    return {
      width: 1 + 2 * periods.length,
      encode(value, write) {
        const days = dateOf(value);
        if (days === null) return 'is not a date';
        write(0, (squashed(days, center, spread) / unit) * factor);
        periods.forEach((period, i) => {
          const angle = (2 * Math.PI * days) / period;
          write(1 + 2 * i, Math.cos(angle) * factor);
          write(2 + 2 * i, Math.sin(angle) * factor);
        });
      },
    };
  },

  tags({ categories, weights }) {
    const places = new Map(categories.map((name, place) => [name, place]));
    const lists = categories.some((name) => name.startsWith('['));
    return {
      width: categories.length + 1,
      encode(value, write) {
        // A list as Python prints it is no list of tags in a CSV file.
        if (!lists && typeof value === 'string' && /^\[.*\]$/s.test(value)) return 'is a list: write its tags as a|b';
        const found = new Map();
        for (const tag of tagsOf(value)) {
          const place = places.get(tag) ?? categories.length;
          found.set(place, weights[place] ?? 1);
        }
        writeUnit(found, write);
      },
    };
  },

  text() {
    const known = new Map();
    const placeOf = (gram) => {
      let found = known.get(gram);
      if (found === undefined) {
        const [low, high] = hashed(gram);
        found = [low % TEXT_DIMENSIONS, high >>> 31 ? 1 : -1];
        known.set(gram, found);
      }
      return found;
    };
    return {
      width: TEXT_DIMENSIONS,
      encode(value, write) {
        const letters = Array.from(` ${words(textOf(value).toLowerCase()).join(' ')} `);
        const counts = new Map();
        for (const size of N_GRAMS) {
          for (let start = 0; start + size <= letters.length; start++) {
            const [place, sign] = placeOf(letters.slice(start, start + size).join(''));
            counts.set(place, (counts.get(place) ?? 0) + sign);
          }
        }
        writeUnit(counts, write);
      },
    };
  },
};

export const encoderOf = (kind, entries) => KINDS[kind](entries);
