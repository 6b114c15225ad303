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

// A line around the rows of a pin, and its name.
export function hull(context, scene, pin, look) {
  pin.around ??= outline(pin.rows.map((row) => [scene.x[row], scene.y[row]]));
  const corners = pin.around.map(([x, y]) => scene.toScreen(x, y));
  context.beginPath();
  corners.forEach(([left, top], i) => (i ? context.lineTo(left, top) : context.moveTo(left, top)));
  context.closePath();
  context.setLineDash([5, 4]);
  context.lineJoin = 'round';
  context.strokeStyle = look.ink;
  context.globalAlpha = 0.75;
  context.lineWidth = 1.4;
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
  const top = corners.reduce((a, b) => (b[1] < a[1] ? b : a));
  context.font = `600 12px ${look.font}`;
  context.textAlign = 'center';
  context.textBaseline = 'bottom';
  context.lineWidth = 4;
  context.strokeStyle = look.ground;
  context.fillStyle = look.ink;
  context.strokeText(pin.name, top[0], top[1] - 6);
  context.fillText(pin.name, top[0], top[1] - 6);
}

// The convex hull of points, by Andrew's monotone chain.
function outline(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
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
