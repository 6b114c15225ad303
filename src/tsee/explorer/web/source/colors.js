// Colors that are distinct in normal vision and in color blindness, on a light and on a dark background.

// Normal vision and red, green and blue color blindness (Machado et al. 2009, severity 1), in linear RGB.
const VISIONS = [
  [1, 0, 0, 0, 1, 0, 0, 0, 1],
  [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
];
// More categories than this repeat colors.
const MAX_COLORS = 60;

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

const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);

function oklab([r, g, b]) {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

// A color as each kind of vision sees it: 12 numbers.
function seen(rgb) {
  const [r, g, b] = rgb.map(linear);
  return VISIONS.flatMap((m) =>
    oklab([0, 3, 6].map((row) => Math.min(1, Math.max(0, m[row] * r + m[row + 1] * g + m[row + 2] * b)))),
  );
}

function apart(a, b) {
  let least = Infinity;
  for (let i = 0; i < 12; i += 3) {
    least = Math.min(least, (a[i] - b[i]) ** 2 + (a[i + 1] - b[i + 1]) ** 2 + (a[i + 2] - b[i + 2]) ** 2);
  }
  return least;
}

const extended = new Map();

// The first ten are the base colors; each further one is the candidate that is farthest from those before it.
function extend(base, theme) {
  if (extended.has(theme)) return extended.get(theme);
  const colors = [...base];
  const candidates = [];
  for (let r = 0; r < 16; r++) {
    for (let g = 0; g < 16; g++) {
      for (let b = 0; b < 16; b++) {
        const rgb = [r / 15, g / 15, b / 15];
        const [lightness, red, yellow] = oklab(rgb.map(linear));
        const chroma = Math.hypot(red, yellow);
        const fits = theme === 'light' ? lightness > 0.35 && lightness < 0.82 : lightness > 0.55 && lightness < 0.93;
        if (fits && chroma > 0.045 && chroma < 0.22) candidates.push({ rgb, seen: seen(rgb), least: Infinity });
      }
    }
  }
  const from = (point) => candidates.forEach((c) => (c.least = Math.min(c.least, apart(c.seen, point))));
  base.forEach((hex) => from(seen(rgbOf(hex))));
  while (colors.length < MAX_COLORS) {
    const best = candidates.reduce((a, b) => (b.least > a.least ? b : a));
    colors.push(hexOf(best.rgb));
    from(best.seen);
  }
  extended.set(theme, colors);
  return colors;
}

// One color for each category. Up to ten have the colors of tsee.plots; of more, the most frequent are the most distinct.
export function categoryColors(base, theme, counts) {
  if (counts.length <= base.length) return base.slice(0, counts.length);
  const colors = extend(base, theme);
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
