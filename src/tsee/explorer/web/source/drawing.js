// Shapes on a canvas, and boxes around points.

export function disc(context, left, top, radius, fill, stroke, width) {
  context.beginPath();
  context.arc(left, top, radius, 0, 7);
  if (fill) {
    context.fillStyle = fill;
    context.fill();
  }
  if (stroke) {
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.stroke();
  }
}

export function boxOf(rows, x, y) {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const row of rows) {
    left = Math.min(left, x[row]);
    right = Math.max(right, x[row]);
    low = Math.min(low, y[row]);
    high = Math.max(high, y[row]);
  }
  return { x: left, y: low, width: right - left, height: high - low };
}
