// New rows among the exemplars: their novelty (placement/novelty.py) and their positions (placement/refined.py).

import { comparesFeatures, nearestOfAll, smallest } from './metric.js';
import { BLOCK } from './network.js';

const MORE_CANDIDATES = 4;

export class Exemplars {
  constructor(memory, model, arrays) {
    this.memory = memory;
    this.model = model;
    this.inputs = arrays.exemplarInputs;
    this.positions = arrays.exemplarPositions;
    this.shares = arrays.noveltyShares;
    this.distances = arrays.noveltyDistances;
    const width = (this.width = model.nInputs);
    const n = (this.n = this.inputs.length / width);
    // Centered, so that rounding costs the products the least.
    this.center = new Float64Array(width);
    for (let i = 0; i < this.inputs.length; i++) this.center[i % width] += this.inputs[i] / n;
    const centered = Float32Array.from(this.inputs, (value, i) => value - this.center[i % width]);
    this.matrix = memory.store(centered, n, width);
    this.halves = new Float32Array(n);
    for (let i = 0; i < centered.length; i++) this.halves[Math.floor(i / width)] += (centered[i] * centered[i]) / 2;
    this.queries = memory.reserve(BLOCK * this.matrix.length);
    this.products = memory.reserve(BLOCK * this.matrix.rows);
  }

  // The novelty of the network's `count` inputs; if the placement is refined, `positions` are replaced.
  of(network, count, positions) {
    const { memory, width, matrix } = this;
    const stride = matrix.length;
    const inputs = memory.view(network.inputs, BLOCK * stride);
    const queries = memory.view(this.queries, BLOCK * stride).fill(0);
    for (let row = 0; row < count; row++) {
      for (let i = 0; i < width; i++) queries[row * stride + i] = inputs[row * stride + i] - this.center[i];
    }
    memory.product(this.queries, matrix.at, this.products, BLOCK, stride * 4, matrix.rows);
    const products = memory.view(this.products, BLOCK * matrix.rows);
    const refined = positions && this.model.placement === 'refined';
    const novelty = new Float32Array(count);
    for (let row = 0; row < count; row++) {
      const input = inputs.subarray(row * stride, row * stride + width);
      const scores = products.subarray(row * matrix.rows, row * matrix.rows + this.n);
      // The same distance as `exemplar_distances` in Python, which includes what the inputs leave out.
      const near = Math.min(this.model.noveltyNeighbors, this.n);
      const k = refined ? this.model.refined.neighbors : near;
      const { indices, squared } = comparesFeatures(this.model.metric)
        ? nearestOfAll(input, this.inputs, this.n, Math.max(k, near), this.model.metric)
        : this.nearest(input, scores, Math.max(k, near));
      const mean = squared.slice(0, near).reduce((sum, value) => sum + value, 0) / near;
      novelty[row] = this.share(Math.sqrt(mean + network.outside[row]));
      indices.length = squared.length = k;
      if (refined) positions.set(this.settled(indices, squared), 2 * row);
    }
    return novelty;
  }

  // The k nearest: a few more candidates by products, then the nearest of these by exact differences.
  nearest(input, scores, k) {
    const more = Math.min(this.n, k + MORE_CANDIDATES);
    const exact = smallest(this.n, more, (i) => this.halves[i] - scores[i]).map((index) => {
      let sum = 0;
      for (let i = 0; i < this.width; i++) sum += (input[i] - this.inputs[index * this.width + i]) ** 2;
      return { index, sum };
    });
    exact.sort((a, b) => a.sum - b.sum);
    return { indices: exact.slice(0, k).map((e) => e.index), squared: exact.slice(0, k).map((e) => e.sum) };
  }

  // The share of known rows that are nearer to their nearest exemplars.
  share(distance) {
    const { shares, distances } = this;
    if (!distances) return NaN;
    let at = 0;
    while (at < distances.length && distances[at] < distance) at++;
    if (at === 0) return 0;
    if (at === distances.length) return 1;
    const gap = distances[at] - distances[at - 1];
    return shares[at - 1] + (shares[at] - shares[at - 1]) * (gap > 0 ? (distance - distances[at - 1]) / gap : 1);
  }

  // The position of a row among its nearest exemplars.
  settled(indices, squared) {
    if (!Number.isFinite(squared[0])) return [NaN, NaN]; // too far for a distance
    const { precision, rounding, settling } = this.model.refined;
    const position = (index) => [this.positions[2 * index], this.positions[2 * index + 1]];
    if (squared[0] <= rounding * squared[squared.length - 1]) return position(indices[0]);
    const weights = neighborWeights(squared, precision);
    const v = indices.map(position);
    const squaredDistance = (a, b) => (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2;
    let best = v[0];
    let least = Infinity;
    for (const candidate of v) {
      const loss = v.reduce((sum, other, j) => sum + weights[j] * Math.log1p(squaredDistance(candidate, other)), 0);
      if (loss < least) [least, best] = [loss, candidate];
    }
    for (const factor of settling) {
      let [x, y, total] = [0, 0, 0];
      for (let j = 0; j < v.length; j++) {
        const pull = weights[j] / (1 + squaredDistance(v[j], best));
        x += pull * v[j][0];
        y += pull * v[j][1];
        total += pull;
      }
      best = [best[0] + factor * (x / total - best[0]), best[1] + factor * (y / total - best[1])];
    }
    return best;
  }
}

// Gaussian weights in units of the gap between the nearest and the one a third down the list (`neighbor_weights` in Python).
function neighborWeights(squared, precision) {
  const gap = Math.max(squared[Math.floor(squared.length / 3)] - squared[0], 1e-30);
  const weights = squared.map((value) => Math.exp((-precision * (value - squared[0])) / gap));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}
