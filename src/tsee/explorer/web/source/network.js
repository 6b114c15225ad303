// Preprocessing and network, step by step, on a block of rows: the counterpart of preprocessing/ and networks.py.

import { comparedRows } from './metric.js';

export const BLOCK = 64;
const NO_LENGTH = 1e-12; // shorter rows of inputs are not brought to full length
const LANES = 4; // numbers that are processed at once; rows are padded to a multiple of it

const padded = (length) => Math.ceil(length / LANES) * LANES;

// Matrices in the memory of the WebAssembly module that multiplies them.
export class Memory {
  constructor(instance) {
    this.product = instance.exports.product;
    this.memory = instance.exports.memory;
    this.end = 16;
  }

  reserve(numbers) {
    const at = this.end;
    this.end += padded(numbers) * 4;
    const missing = this.end - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / 65536));
    return at;
  }

  view(at, numbers) {
    return new Float32Array(this.memory.buffer, at, numbers);
  }

  // Stores a matrix; its rows and their number are padded with zeros.
  store(values, rows, length) {
    const stride = padded(length);
    const at = this.reserve(padded(rows) * stride);
    const view = this.view(at, padded(rows) * stride);
    for (let row = 0; row < rows; row++) view.set(values.subarray(row * length, (row + 1) * length), row * stride);
    return { at, rows: padded(rows), length: stride };
  }
}

export class Network {
  constructor(memory, model, arrays) {
    this.memory = memory;
    this.model = model;
    this.mean = arrays.mean;
    this.margin = arrays.margin; // inputs that are not larger count as zero
    // What each centered feature is multiplied by.
    this.factors = Float64Array.from(this.mean, (_, i) => 1 / (model.scale * (arrays.spread ? arrays.spread[i] : 1)));
    let width = model.nFeatures;
    let widest = width;
    this.steps = model.steps.map((step) => {
      if (step.kind === 'linear') {
        const weight = arrays[step.weight];
        const outputs = weight.length / width;
        const matrix = memory.store(weight, outputs, width);
        width = outputs;
        widest = Math.max(widest, width);
        return { ...step, matrix, width, bias: step.bias && arrays[step.bias] };
      }
      if (step.kind === 'layer norm') return { ...step, width, weight: arrays[step.weight], bias: arrays[step.bias] };
      return { ...step, width };
    });
    this.buffers = [0, 1].map(() => memory.reserve(BLOCK * padded(widest)));
    this.inputs = memory.reserve(BLOCK * padded(model.nInputs));
    this.outside = new Float64Array(BLOCK);
  }

  // The positions of up to BLOCK rows of data. Their inputs remain at `this.inputs`, and the squared length of what the
  // inputs leave out of each row in `this.outside`. A row that cannot be compared is passed to `refuse`.
  run(rows, count, refuse) {
    const { memory, model } = this;
    const width = model.nFeatures;
    rows = comparedRows(rows, width, count, model.metric, refuse);
    let stride = padded(width);
    let [here, there] = this.buffers;
    const first = memory.view(here, BLOCK * stride).fill(0);
    const { mean, factors } = this;
    for (let row = 0; row < count; row++) {
      for (let i = 0; i < width; i++) first[row * stride + i] = (rows[row * width + i] - mean[i]) * factors[i];
    }
    const squares = (row) => {
      const values = memory.view(here, BLOCK * stride);
      let sum = 0;
      for (let i = row * stride; i < (row + 1) * stride; i++) sum += values[i] ** 2;
      return sum;
    };
    const keep = () => {
      const values = memory.view(here, BLOCK * stride);
      for (let row = 0; row < count; row++) {
        (this.margin ?? []).forEach((margin, i) => {
          if (Math.abs(values[row * stride + i]) <= margin) values[row * stride + i] = 0;
        });
        const squared = squares(row);
        this.outside[row] = Math.max(0, this.outside[row] - squared);
        if (model.length === null || !projected) continue;
        const factor = model.length / Math.max(Math.sqrt(squared), NO_LENGTH);
        for (let i = row * stride; i < (row + 1) * stride; i++) values[i] *= factor;
      }
      memory.view(this.inputs, BLOCK * stride).set(values);
    };
    const projected = model.steps[0].weight === 'basis';
    for (let row = 0; row < count; row++) this.outside[row] = projected ? squares(row) : 0;
    if (!projected) keep();
    this.steps.forEach((step, index) => {
      if (step.kind === 'linear') {
        const { matrix } = step;
        memory.product(here, matrix.at, there, BLOCK, matrix.length * 4, matrix.rows);
        [here, there] = [there, here];
        stride = matrix.rows;
        if (step.bias) add(memory.view(here, BLOCK * stride), stride, step.bias, count);
      } else {
        apply(step, memory.view(here, BLOCK * stride), stride, count);
      }
      if (projected && index === 0) keep();
    });
    const found = memory.view(here, BLOCK * stride);
    const positions = new Float32Array(2 * count);
    for (let row = 0; row < count; row++) {
      positions[2 * row] = found[row * stride];
      positions[2 * row + 1] = found[row * stride + 1];
    }
    return positions;
  }
}

function add(values, stride, bias, count) {
  for (let row = 0; row < count; row++) {
    for (let i = 0; i < bias.length; i++) values[row * stride + i] += bias[i];
  }
}

const FUNCTIONS = {
  relu: (x) => (x > 0 ? x : 0),
  silu: (x) => x / (1 + Math.exp(-x)),
  gelu: (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)),
  tanh: Math.tanh,
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
};

function apply(step, values, stride, count) {
  const { kind, width } = step;
  if (kind === 'layer norm') return normalize(step, values, stride, count);
  if (kind === 'softmax') return choose(width, values, stride, count);
  const order = step.order;
  const act = kind === 'power' ? (order === 2 ? (x) => x * x : (x) => x ** order) : FUNCTIONS[kind];
  for (let row = 0; row < count; row++) {
    for (let i = row * stride; i < row * stride + width; i++) values[i] = act(values[i]);
  }
}

function normalize({ width, weight, bias, epsilon }, values, stride, count) {
  for (let row = 0; row < count; row++) {
    const from = row * stride;
    let sum = 0;
    for (let i = 0; i < width; i++) sum += values[from + i];
    const mean = sum / width;
    let squares = 0;
    for (let i = 0; i < width; i++) squares += (values[from + i] - mean) ** 2;
    const factor = 1 / Math.sqrt(squares / width + epsilon);
    for (let i = 0; i < width; i++) values[from + i] = (values[from + i] - mean) * factor * weight[i] + bias[i];
  }
}

// The softmax of each row.
function choose(width, values, stride, count) {
  for (let row = 0; row < count; row++) {
    const scores = values.subarray(row * stride, row * stride + width);
    const largest = scores.reduce((most, score) => Math.max(most, score), -Infinity);
    let total = 0;
    for (let i = 0; i < width; i++) total += scores[i] = Math.exp(scores[i] - largest);
    for (let i = 0; i < width; i++) scores[i] /= total;
  }
}

// Abramowitz and Stegun 7.1.26: within 1.5e-7.
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const y = 1 - ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * Math.exp(-x * x);
  return x < 0 ? -y : y;
}
