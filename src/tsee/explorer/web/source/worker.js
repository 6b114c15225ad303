// Places new rows in a worker, so that the page stays responsive.

import { BadData, matchColumns, numbersOf, quoted, readTable } from './csv.js';
import { TableEncoder } from './encoding.js';
import { Exemplars } from './exemplars.js';
import { BLOCK, Memory, Network } from './network.js';
import product from '../node_modules/.built/product.wasm';

const TELL_EVERY = 60; // milliseconds
let parts = null;

async function begin({ model, arrays }) {
  const { instance } = await WebAssembly.instantiate(product);
  const memory = new Memory(instance);
  parts = {
    model,
    table: model.table ? new TableEncoder(model, arrays) : null,
    network: new Network(memory, model, arrays),
    exemplars: arrays.exemplarInputs ? new Exemplars(memory, model, arrays) : null,
  };
}

async function textOf(content, source) {
  if (typeof content === 'string') return content;
  let bytes = new Uint8Array(content);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    try {
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
      bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    } catch {
      throw new BadData(`${quoted(source)} is damaged or cut off: copy or write it again.`);
    }
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    if (bytes.subarray(0, 65536).includes(0)) {
      throw new BadData(`${quoted(source)} is not a text of separated values: save the data as CSV.`);
    }
    throw new BadData(`${quoted(source)} is not text in UTF-8: save it as UTF-8.`);
  }
}

async function place({ content, source }) {
  const { model, network, exemplars } = parts;
  const table = readTable(await textOf(content, source), source);
  const { features, aside } = matchColumns(table, model);
  const rowsOf = parts.table?.rowsOf(table, features) ?? ((from, to) => numbersOf(table, features, from, to));
  const n = table.rows.length;
  const positions = new Float32Array(2 * n);
  const novelty = exemplars?.distances ? new Float32Array(n) : null;
  let told = 0;
  for (let from = 0; from < n; from += BLOCK) {
    const to = Math.min(n, from + BLOCK);
    const refuse = (row, problem) => {
      throw new BadData(`${quoted(source)}, row ${from + row} (line ${table.lines[from + row]}) ${problem}`);
    };
    const found = network.run(rowsOf(from, to), to - from, refuse);
    const fresh = exemplars?.of(network, to - from, found);
    novelty?.set(fresh, from);
    positions.set(found, 2 * from);
    if (performance.now() - told > TELL_EVERY) {
      told = performance.now();
      postMessage({ kind: 'progress', share: to / n });
    }
  }
  const lost = positions.findIndex((value) => !Number.isFinite(value));
  if (lost >= 0) {
    const row = lost >> 1;
    throw new BadData(
      `${quoted(source)}, row ${row} (line ${table.lines[row]}) is too far from the data of the map to be placed: check its values.`,
    );
  }
  const columns = aside.map((i) => ({ name: table.names[i], values: table.rows.map((row) => row[i]) }));
  postMessage({ kind: 'done', source, positions, novelty, columns });
}

// One message after another.
let last = Promise.resolve();
onmessage = ({ data }) => {
  last = last
    .then(() => (data.kind === 'begin' ? begin(data) : place(data)))
    .catch((error) => {
      const sentence = error instanceof BadData ? error.message : `The rows could not be placed: ${error.message}`;
      postMessage({ kind: 'refused', sentence });
    });
};
