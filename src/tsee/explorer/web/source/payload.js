// The data inside the page: the counterpart of packing.py.

const TYPES = {
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  float32: Float32Array,
  float64: Float64Array,
};

export async function unpack(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream('deflate'));
  const content = await new Response(stream).arrayBuffer();
  const start = 4 + new DataView(content).getUint32(0, true);
  const description = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 4, start - 4)));
  const arrays = {};
  for (const [name, [type, offset, size]] of Object.entries(description.arrays)) {
    if (type === 'float16') whenAsked(arrays, name, () => widened(new Uint16Array(content, start + offset, size)));
    else arrays[name] = new TYPES[type](content, start + offset, size);
  }
  return { ...description, arrays };
}

// The network is needed only when rows are placed.
function whenAsked(object, name, make) {
  let value = null;
  Object.defineProperty(object, name, { enumerable: true, get: () => (value ??= make()) });
}

function bytesOf(text) {
  text = text.trim();
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const parts = [];
  const step = 1 << 22; // a multiple of 4, the length of a group in base64
  for (let from = 0; from < text.length; from += step) {
    const piece = atob(text.slice(from, from + step));
    const bytes = new Uint8Array(piece.length);
    for (let i = 0; i < piece.length; i++) bytes[i] = piece.charCodeAt(i);
    parts.push(bytes);
  }
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

// Half precision as single precision, by a table of all 65536 values.
export function widened(halves) {
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits >> 15 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 0) table[bits] = (sign * fraction) / 2 ** 24;
    else if (exponent === 31) table[bits] = fraction ? NaN : sign * Infinity;
    else table[bits] = sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
  }
  return Float32Array.from(halves, (bits) => table[bits]);
}
