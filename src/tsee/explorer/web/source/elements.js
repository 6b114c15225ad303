// Elements of the page. Values are always set as text, so that they can never become markup.

const SVG = 'http://www.w3.org/2000/svg';

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.assign(element.style, value);
    else if (name in element && !name.includes('-') && name !== 'list') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const ICONS = {
  pan: 'M9 11V5.5a1.5 1.5 0 0 1 3 0V10m0-5.5v-1a1.5 1.5 0 0 1 3 0V10m0-5a1.5 1.5 0 0 1 3 0v6m0-3.5a1.5 1.5 0 0 1 3 0V15a6 6 0 0 1-6 6h-2.2a6 6 0 0 1-4.9-2.6L4.2 13.300a1.500 1.500 0 0 1 2.300-1.900L9 14v-3',
  lasso: 'M7 15.500C4.600 14.600 3 12.700 3 10.500 3 6.900 7 4 12 4s9 2.900 9 6.500-4 6.500-9 6.500c-.9 0-1.700-.1-2.500-.2M7 15.500a2 2 0 1 0 2.500 1.300M7 15.500c.9.200 1.800.600 2.500 1.300m-.6 2.200c-.1 1.100-.9 2-2.400 2.500',
  box: 'M4 8V5a1 1 0 0 1 1-1h3m4 0h0m4 0h3a1 1 0 0 1 1 1v3m0 4h0m0 4v3a1 1 0 0 1-1 1h-3m-4 0h0m-4 0H5a1 1 0 0 1-1-1v-3m0-4h0',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  fit: 'M4 9V5a1 1 0 0 1 1-1h4m6 0h4a1 1 0 0 1 1 1v4m0 6v4a1 1 0 0 1-1 1h-4m-6 0H5a1 1 0 0 1-1-1v-4',
  exemplars: 'M12 4a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5M6 14a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5m12 0a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5',
  names: 'M5 19 11 5h2l6 14M7.300 14h9.400',
  dark: 'M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500',
  light: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8m0-5v2m0 14v2M3 12h2m14 0h2M5.600 5.600 7 7m10 10 1.400 1.400M5.600 18.400 7 17M17 7l1.400-1.400',
  help: 'M9 9a3 3 0 1 1 4.500 2.600c-.9.500-1.500 1.200-1.500 2.400m0 3.500v.1',
  drop: 'M12 4v11m-4.500-4.500L12 15l4.500-4.500M4 17v2a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-2',
  close: 'M6 6l12 12M18 6 6 18',
  pictures: 'M4 5h16v14H4zM4 16l4.500-5 4 4.500 3-3 4.500 5M15.500 8.500h.1',
  contours: 'M12 3c5 0 9 3.500 9 8.500S17 21 11.500 21 3 17.500 3 12.500 7 3 12 3m0 4c2.800 0 5 2 5 4.800S14.800 17 12 17s-5-2-5-4.800S9.200 7 12 7m0 3.500a1.500 1.500 0 1 0 0 3 1.500 1.500 0 0 0 0-3',
  link: 'M10 14a4 4 0 0 0 5.700 0l3-3A4 4 0 0 0 13 5.300l-1 1M14 10a4 4 0 0 0-5.700 0l-3 3a4 4 0 0 0 5.700 5.700l1-1',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14m5 12 4.500 4.500',
};

export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

export function iconButton(name, label, onclick, more = {}) {
  return h('button', { type: 'button', className: 'icon', title: label, 'aria-label': label, onclick, ...more }, icon(name));
}

export function download(name, lines) {
  const link = h('a', { href: URL.createObjectURL(new Blob(lines, { type: 'text/csv;charset=utf-8' })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A line of CSV.
export function csvLine(fields) {
  return fields.map((field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',') + '\r\n';
}

export function later(wait, act) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), wait);
  };
}
