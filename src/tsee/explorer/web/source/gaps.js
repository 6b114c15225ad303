// Gaps in a row of numbers, filled with what the rest of the row lets expect: the counterpart of tables/gaps.py.

const STEPS = 25;

export class GapFiller {
  // mean: width numbers; axes: width rows of directions.
  constructor(mean, axes) {
    this.mean = mean;
    this.axes = axes;
    this.directions = axes.length / mean.length;
    this.along = new Float64Array(this.directions);
  }

  // Replaces NaN in a row. Only the gaps change from step to step, so only their part of the sums is computed again.
  fill(row) {
    const { mean, axes, directions, along } = this;
    const gaps = [];
    const known = new Float64Array(directions);
    for (let i = 0; i < row.length; i++) {
      if (Number.isNaN(row[i])) gaps.push(i);
      else for (let k = 0; k < directions; k++) known[k] += (row[i] - mean[i]) * axes[i * directions + k];
    }
    if (!gaps.length) return;
    const filled = new Float64Array(gaps.length);
    for (let step = 0; step < STEPS; step++) {
      along.set(known);
      gaps.forEach((i, gap) => {
        for (let k = 0; k < directions; k++) along[k] += filled[gap] * axes[i * directions + k];
      });
      gaps.forEach((i, gap) => {
        let sum = 0;
        for (let k = 0; k < directions; k++) sum += along[k] * axes[i * directions + k];
        filled[gap] = sum;
      });
    }
    gaps.forEach((i, gap) => (row[i] = mean[i] + filled[gap]));
  }
}
