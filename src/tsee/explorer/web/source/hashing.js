// BLAKE2b of a short text, its first 8 bytes: the hash by which tables/encoders.py counts n-grams. Numbers of 64 bits are
// two of 32, the lower first.

const START = new Uint32Array([
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
]);
// The order in which each round takes the words of the text; the last two rounds are as the first two.
const ORDERS = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
const MIXED = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
];
const LENGTH = 8;
const encoder = new TextEncoder();
const v = new Uint32Array(32);
const m = new Uint32Array(32);

// v[a] += w[b]
function add(a, w, b) {
  const low = v[2 * a] + w[2 * b];
  v[2 * a + 1] += w[2 * b + 1] + (low >= 2 ** 32 ? 1 : 0);
  v[2 * a] = low;
}

// v[a] = (v[a] xor v[b]) turned right by `bits`
function turn(a, b, bits) {
  let low = v[2 * a] ^ v[2 * b];
  let high = v[2 * a + 1] ^ v[2 * b + 1];
  if (bits >= 32) [low, high, bits] = [high, low, bits - 32];
  v[2 * a] = bits ? (low >>> bits) | (high << (32 - bits)) : low;
  v[2 * a + 1] = bits ? (high >>> bits) | (low << (32 - bits)) : high;
}

// [the lower, the higher 32 bits]; the text has at most 128 bytes.
export function hashed(text) {
  const bytes = encoder.encode(text);
  m.fill(0);
  bytes.forEach((byte, i) => (m[i >> 2] |= byte << (8 * (i & 3))));
  v.set(START);
  v.set(START, 16);
  v[0] ^= 0x01010000 ^ LENGTH;
  const [low, high] = v;
  v[24] ^= bytes.length;
  v[28] = ~v[28];
  v[29] = ~v[29];
  for (let round = 0; round < 12; round++) {
    const order = ORDERS[round % 10];
    MIXED.forEach(([a, b, c, d], i) => {
      add(a, v, b);
      add(a, m, order[2 * i]);
      turn(d, a, 32);
      add(c, v, d);
      turn(b, c, 24);
      add(a, v, b);
      add(a, m, order[2 * i + 1]);
      turn(d, a, 16);
      add(c, v, d);
      turn(b, c, 63);
    });
  }
  return [(low ^ v[0] ^ v[16]) >>> 0, (high ^ v[1] ^ v[17]) >>> 0];
}
