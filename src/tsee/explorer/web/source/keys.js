// What the keys do.

import { help } from './help.js';

const STEP = 80; // pixels

export function act(page, event) {
  const { scene } = page;
  const typing = event.target.closest?.('input, textarea, select, dialog');
  if (event.key === 'Escape' && !event.target.closest?.('dialog')) {
    if (typing) event.target.blur();
    if (page.field?.value) {
      page.field.value = '';
      page.search('');
    } else if (page.details.row >= 0) page.close();
    else if (page.selected) page.select(null);
    else if (page.legend.filters || page.filters.chosen.length) {
      page.filters.clear();
      page.legend.reset();
    }
    page.setTool('pan');
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const acts = {
    ArrowLeft: () => scene.panBy(STEP, 0),
    ArrowRight: () => scene.panBy(-STEP, 0),
    ArrowUp: () => scene.panBy(0, STEP),
    ArrowDown: () => scene.panBy(0, -STEP),
    '+': () => scene.zoomBy(1.4),
    '=': () => scene.zoomBy(1.4),
    '-': () => scene.zoomBy(1 / 1.4),
    0: () => scene.look(),
    v: () => page.setTool('pan'),
    l: () => page.setTool('lasso'),
    b: () => page.setTool('box'),
    s: () => page.selectView(),
    r: () => page.selected && page.openReading(),
    i: () => middle(page),
    e: () => page.toggle('exemplars'),
    t: () => page.toggle('names'),
    p: () => page.toggle('pictures'),
    c: () => page.toggle('contours'),
    d: () => page.setTheme(),
    '[': () => page.versions?.go(page.versions.at - 1),
    ']': () => page.versions?.go(page.versions.at + 1),
    n: () => page.additions.open(),
    '/': () => page.field?.focus(),
    '?': () => help(page.data),
  };
  const wanted = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!wanted) return;
  event.preventDefault();
  wanted();
}

// The row nearest to the middle of the view.
function middle(page) {
  const { left, top, right, bottom } = page.free();
  const { scene } = page;
  const row = scene.grid.nearest(...scene.fromScreen((left + right) / 2, (top + bottom) / 2), 4, scene.shown);
  if (row < 0) return;
  page.open(row);
  page.details.element.querySelector('button[data-row]')?.focus({ preventScroll: true });
}
