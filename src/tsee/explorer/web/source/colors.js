// The colors of points, on a light and on a dark background.

// Up to this many categories have the first colors, in their order.
const FEW = 10;

// matplotlib's viridis in sixteenths. Each background omits the end that is hard to see on it.
const VIRIDIS = [
  '#440154', '#48186a', '#472d7b', '#424086', '#3b528b', '#33638d', '#2c728e', '#26828e', '#21918c',
  '#1fa088', '#28ae80', '#3fbc73', '#5ec962', '#84d44b', '#addc30', '#d8e219', '#fde725',
];

export const MISSING = { light: '#c9ccd1', dark: '#4a4f57' };
export const FAINT = { light: '#d5d7da', dark: '#33373d' };

export function rgbOf(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
}

function hexOf(rgb) {
  return '#' + rgb.map((part) => Math.round(Math.min(1, Math.max(0, part)) * 255).toString(16).padStart(2, '0')).join('');
}

export function mixed(a, b, share) {
  const from = rgbOf(a);
  const to = rgbOf(b);
  return hexOf(from.map((part, i) => part * (1 - share) + to[i] * share));
}

// One color for each category, as in tsee.plots: of more than ten, the most frequent have the most distinct.
export function categoryColors(colors, counts) {
  if (counts.length <= FEW) return colors.slice(0, counts.length);
  const order = counts.map((_, i) => i).sort((a, b) => counts[b] - counts[a] || a - b);
  const chosen = [];
  order.forEach((category, rank) => (chosen[category] = colors[rank % colors.length]));
  return chosen;
}

// A color for a share from 0 to 1.
export function scaleColor(share, theme) {
  const within = theme === 'light' ? share * 0.94 : 0.14 + share * 0.86;
  const at = Math.min(15.9999, Math.max(0, within * 16));
  return mixed(VIRIDIS[Math.floor(at)], VIRIDIS[Math.floor(at) + 1], at % 1);
}
