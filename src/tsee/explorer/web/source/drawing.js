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

// Circles around positions, few or many.
export function rings(context, scene, { x, y }, look) {
  const room = Math.sqrt((scene.width * scene.height) / x.length);
  const radius = Math.min(6, Math.max(1.6, room / 12)) * Math.min(2, Math.max(1, Math.sqrt(scene.zoom)));
  context.beginPath();
  for (let i = 0; i < x.length; i++) {
    const [left, top] = scene.toScreen(x[i], y[i]);
    if (left < -9 || top < -9 || left > scene.width + 9 || top > scene.height + 9) continue;
    context.moveTo(left + radius, top);
    context.arc(left, top, radius, 0, 7);
  }
  context.globalAlpha = 0.85;
  context.strokeStyle = look.ground;
  context.lineWidth = 2.5;
  context.stroke();
  context.strokeStyle = look.ink;
  context.lineWidth = 1;
  context.stroke();
  context.globalAlpha = 1;
}
