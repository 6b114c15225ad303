// The page: the legend, the search and the selection decide which points are shown.

import { Additions } from './additions.js';
import { Card } from './card.js';
import { FAINT } from './colors.js';
import { columnsOf, counted, many, plain } from './columns.js';
import { boxOf, disc, rings } from './drawing.js';
import { csvLine, download, h, icon, iconButton, later } from './elements.js';
import { connect } from './embedded.js';
import { help } from './help.js';
import { Legend } from './legend.js';
import { anchors, paintNames } from './names.js';
import { unpack } from './payload.js';
import { Scene } from './scene.js';
import { LOOKS, remember, remembered } from './theme.js';

const $ = (name) => document.getElementById(name);
const narrow = matchMedia('(max-width: 640px)');

class Page {
  constructor(data) {
    this.data = data;
    this.columns = columnsOf(data);
    this.colorable = this.columns.filter((column) => column.kind !== 'text');
    this.column = this.colorable.find((column) => column.name === data.color) || this.colorable[0] || null;
    this.tell = () => {}; // the notebook that the page is in
    this.selected = null; // row numbers, or null
    this.found = null; // 1 for rows that the search found, or null
    this.exemplarsShown = false;
    this.namesShown = true;
    this.theme = remembered() || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
    document.documentElement.dataset.theme = this.theme;

    this.scene = new Scene($('map'), $('overlay'), data);
    this.card = new Card($('card'), data, this.columns);
    this.exemplars = data.arrays.exemplars && this.inScene(data.arrays.exemplars);
    this.buildHeading();
    this.buildPanel();
    this.buildTools();
    this.additions = new Additions(this, $('additions'));
    this.listen();
  }

  get look() {
    return { ...LOOKS[this.theme], font: 'ui-sans-serif, system-ui, sans-serif' };
  }

  inScene(positions) {
    const x = new Float32Array(positions.length / 2);
    const y = new Float32Array(positions.length / 2);
    for (let i = 0; i < x.length; i++) [x[i], y[i]] = this.scene.fromMap(positions[2 * i], positions[2 * i + 1]);
    return { x, y };
  }

  async start() {
    this.inset();
    await this.scene.resize();
    this.setTheme(this.theme);
    this.scene.look(undefined, false);
    await this.update();
    document.body.classList.add('ready');
    $('loading').remove();
  }

  // ---- parts ----

  buildHeading() {
    $('heading').querySelector('h1').textContent = this.data.title;
  }

  buildPanel() {
    const panel = $('panel');
    const searchable = this.columns.some((column) => column.kind !== 'number');
    if (searchable) {
      this.field = h('input', {
        type: 'search',
        id: 'search',
        placeholder: 'Search',
        'aria-label': 'Search names and texts',
        autocomplete: 'off',
        spellcheck: false,
        oninput: later(150, () => this.search(this.field.value)),
      });
      this.matches = h('output', {});
      panel.append(h('label', { className: 'search' }, icon('search'), this.field, this.matches));
    }
    this.legend = new Legend(h('div', { className: 'legend' }), this.data.colors, () => this.update());
    if (this.column) {
      this.chooser =
        this.colorable.length > 1
          ? h(
              'select',
              { id: 'color', 'aria-label': 'Color by', onchange: (event) => this.colorBy(Number(event.target.value)) },
              this.colorable.map((column, index) => h('option', { value: String(index) }, column.name)),
            )
          : h('strong', { id: 'color' }, this.column.name);
      if (this.colorable.length > 1) this.chooser.value = String(this.colorable.indexOf(this.column));
      this.all = h('button', { type: 'button', className: 'text', hidden: true, onclick: () => this.legend.reset() }, 'Show all');
      panel.append(h('div', { className: 'chooser' }, this.chooser, this.all));
    }
    panel.append(this.legend.element);
    panel.hidden = !searchable && !this.column;
  }

  buildTools() {
    const tool = (name, label, key) =>
      iconButton(name, `${label} (${key})`, () => this.setTool(name), { 'data-tool': name, 'aria-pressed': 'false' });
    this.exemplarButton =
      this.exemplars &&
      iconButton('exemplars', `Show the ${many(this.exemplars.x.length, 'exemplar')} (E)`, () => this.toggleExemplars(), {
        'aria-pressed': 'false',
        id: 'exemplars',
      });
    this.nameButton = iconButton('names', 'Names on the map (T)', () => this.toggleNames(), {
      'aria-pressed': 'true',
      id: 'names',
    });
    this.themeButton = h('button', { type: 'button', className: 'icon', id: 'theme', onclick: () => this.setTheme() });
    const placeButton = h(
      'button',
      { type: 'button', id: 'place', title: 'Place new rows on the map (N)', onclick: () => this.additions.open() },
      icon('drop'),
      h('span', {}, 'Place new rows'),
    );
    $('tools').append(
      h('div', { className: 'group' }, tool('pan', 'Move', 'V'), tool('lasso', 'Lasso', 'L'), tool('box', 'Box', 'B')),
      h(
        'div',
        { className: 'group zoom' },
        iconButton('minus', 'Zoom out (−)', () => this.scene.zoomBy(1 / 1.6)),
        iconButton('fit', 'Whole map (0)', () => this.scene.look(), { id: 'fit' }),
        iconButton('plus', 'Zoom in (+)', () => this.scene.zoomBy(1.6)),
      ),
      h('div', { className: 'group' }, this.exemplarButton, this.nameButton, this.themeButton, iconButton('help', 'Help (?)', () => help(this.data))),
      placeButton,
    );
    this.setTool('pan');
  }

  // ---- states ----

  setTool(name) {
    this.scene.mode(name);
    document.body.dataset.tool = name;
    for (const button of document.querySelectorAll('[data-tool]')) {
      if (button !== document.body) button.setAttribute('aria-pressed', String(button.dataset.tool === name));
    }
  }

  setTheme(theme = this.theme === 'dark' ? 'light' : 'dark', kept = true) {
    const changed = theme !== this.theme;
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
    const label = theme === 'dark' ? 'Light background (D)' : 'Dark background (D)';
    this.themeButton.title = label;
    this.themeButton.setAttribute('aria-label', label);
    this.themeButton.replaceChildren(icon(theme === 'dark' ? 'light' : 'dark'));
    this.scene.theme(this.look.ink);
    this.legend.show(this.column, theme);
    if (changed) {
      if (kept) remember(theme);
      this.update();
    }
  }

  toggleExemplars() {
    if (!this.exemplars) return;
    this.exemplarsShown = !this.exemplarsShown;
    this.exemplarButton.setAttribute('aria-pressed', String(this.exemplarsShown));
    this.scene.redraw();
  }

  toggleNames() {
    this.namesShown = !this.namesShown;
    this.nameButton.setAttribute('aria-pressed', String(this.namesShown));
    this.scene.redraw();
  }

  colorBy(index) {
    this.column = this.colorable[index];
    if (this.chooser) this.chooser.value = String(index);
    this.legend.show(this.column, this.theme);
    this.tell({ color: this.column.name });
    this.update();
  }

  search(text) {
    const word = text.trim().toLowerCase();
    this.found = null;
    if (word) {
      this.found = new Uint8Array(this.data.rows);
      for (const column of this.columns) column.search(word, this.found);
    }
    this.update();
  }

  select(rows) {
    this.selected = rows && rows.length ? [...rows].sort((a, b) => a - b) : null;
    this.tell({ selection: this.selected || [] });
    this.update();
  }

  // Shows the points that the legend, the search and the selection leave.
  async update() {
    const { shown } = this.scene;
    shown.fill(1);
    this.legend.filter(shown);
    let hits = 0;
    if (this.found) {
      for (let i = 0; i < shown.length; i++) {
        hits += this.found[i];
        if (!this.found[i]) shown[i] = 0;
      }
    }
    if (this.selected) {
      const inside = new Uint8Array(shown.length);
      for (const row of this.selected) inside[row] = 1;
      for (let i = 0; i < shown.length; i++) if (!inside[i]) shown[i] = 0;
    }
    if (this.matches) this.matches.textContent = this.found ? (hits ? counted(hits) : 'none') : '';
    if (this.all) this.all.hidden = !this.legend.filters;
    this.anchors = this.column?.kind === 'category' && this.column.names.length > 1 ? anchorsOf(this) : [];
    this.nameButton.hidden = !this.anchors.length;
    this.saySelection();
    this.inset();
    const drawn = this.scene.color(this.legend.codes(this.data.rows), this.legend.colors, FAINT[this.theme]);
    this.sayCounts();
    await drawn;
  }

  sayCounts() {
    const { n, above } = this.scene;
    const parts = [above === n ? many(n, 'point') : `${counted(above)} of ${many(n, 'point')}`, this.data.method];
    $('counts').textContent = parts.join(' · ');
  }

  saySelection() {
    const bar = $('selection');
    bar.hidden = !this.selected;
    if (!this.selected) return;
    bar.replaceChildren(
      h('strong', {}, many(this.selected.length, 'row')),
      h('button', { type: 'button', className: 'text', id: 'save', onclick: () => this.saveSelection() }, 'Download CSV'),
      h('button', { type: 'button', className: 'text', onclick: () => this.lookAtRows(this.selected) }, 'Zoom in'),
      iconButton('close', 'Clear the selection (Esc)', () => this.select(null)),
    );
  }

  saveSelection() {
    const lines = [csvLine(['row', 'x', 'y', ...this.columns.map((column) => column.name)])];
    for (const row of [...this.selected].sort((a, b) => a - b)) {
      const [x, y] = this.scene.toMap(this.scene.x[row], this.scene.y[row]);
      lines.push(csvLine([String(row), plain(x), plain(y), ...this.columns.map((column) => column.text(row))]));
    }
    download('selection.csv', lines);
  }

  lookAtRows(rows) {
    const { x, y } = this.scene;
    this.scene.look(boxOf(rows, x, y), true, 1.2);
  }

  // The part of the window that the panels leave free for the map.
  inset() {
    const panel = $('panel').getBoundingClientRect();
    const heading = $('heading').getBoundingClientRect();
    const tools = $('tools').getBoundingClientRect();
    const added = $('additions').getBoundingClientRect();
    this.scene.insets = narrow.matches
      ? { top: Math.max(heading.bottom, added.bottom), right: 12, bottom: innerHeight - (panel.height ? panel.top : tools.top), left: 12 }
      : { top: heading.bottom, right: panel.width ? innerWidth - panel.left + 8 : 24, bottom: innerHeight - tools.top + 8, left: Math.max(24, added.right + 8) };
  }

  // ---- the pointer and the keys ----

  hover(at) {
    const added = at && this.additions.at(at);
    if (added !== null && added !== undefined && added >= 0) {
      this.hovered = -1;
      this.additions.card(added, this.card, at);
      this.scene.redraw();
      return;
    }
    let row = -1;
    if (at) {
      const radius = Math.max(9, this.scene.size + 4) / this.scene.unit;
      row = this.scene.grid.nearest(...this.scene.fromScreen(...at), radius, this.scene.shown);
    }
    if (row < 0) this.card.hide();
    else if (row === this.hovered && !this.card.element.hidden) this.card.moveTo(at);
    else this.card.row(row, at, this.column, this.legend.colorOf(row));
    if (row !== this.hovered) {
      this.hovered = row;
      document.body.classList.toggle('over', row >= 0);
      this.scene.redraw();
    }
  }

  paint(context) {
    const { scene, look } = this;
    if (this.exemplarsShown) rings(context, scene, this.exemplars, look);
    this.additions?.paint(context);
    if (this.namesShown && this.anchors?.length && !this.found && !this.selected) {
      paintNames(context, scene, this.anchors, this.legend.colors, this.legend.only, look);
    }
    if (this.hovered >= 0) {
      const [left, top] = scene.toScreen(scene.x[this.hovered], scene.y[this.hovered]);
      disc(context, left, top, 6.5, this.legend.colorOf(this.hovered), look.ground, 2.5);
      disc(context, left, top, 7.5, null, look.ink, 1);
    }
  }

  listen() {
    const { scene } = this;
    scene.on('hover', (at) => this.hover(at));
    scene.on('tap', (at) => this.hover(at));
    scene.on('view', () => this.card.hide());
    scene.on('paint', (context) => this.paint(context));
    scene.on('lasso', (rows) => {
      this.select(rows);
      if (rows.length) this.setTool('pan');
    });
    addEventListener('keydown', (event) => this.key(event));
    addEventListener('resize', () => this.inset());
  }

  key(event) {
    const typing = event.target.closest?.('input, textarea, select, dialog');
    if (event.key === 'Escape' && !event.target.closest?.('dialog')) {
      if (typing) event.target.blur();
      if (this.field?.value) {
        this.field.value = '';
        this.search('');
      } else if (this.selected) this.select(null);
      else if (this.legend.filters) this.legend.reset();
      this.setTool('pan');
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 80;
    const acts = {
      ArrowLeft: () => scene.panBy(step, 0),
      ArrowRight: () => scene.panBy(-step, 0),
      ArrowUp: () => scene.panBy(0, step),
      ArrowDown: () => scene.panBy(0, -step),
      '+': () => scene.zoomBy(1.4),
      '=': () => scene.zoomBy(1.4),
      '-': () => scene.zoomBy(1 / 1.4),
      0: () => scene.look(),
      v: () => this.setTool('pan'),
      l: () => this.setTool('lasso'),
      b: () => this.setTool('box'),
      e: () => this.toggleExemplars(),
      t: () => this.toggleNames(),
      d: () => this.setTheme(),
      n: () => this.additions.open(),
      '/': () => this.field?.focus(),
      '?': () => help(this.data),
    };
    const { scene } = this;
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

function anchorsOf(page) {
  page.column.anchors ??= anchors(page.column, page.scene.x, page.scene.y);
  return page.column.anchors;
}

function refuse(sentence) {
  const line = $('loading');
  line.textContent = sentence;
  line.setAttribute('role', 'alert');
}

async function main() {
  if (typeof DecompressionStream === 'undefined') {
    return refuse('This browser is too old for the map: open the file in a browser from 2023 or later.');
  }
  const payload = $('payload');
  const data = await unpack(payload.textContent);
  payload.remove();
  const test = document.createElement('canvas');
  if (!test.getContext('webgl')?.getExtension('OES_texture_float')) {
    return refuse('The map needs WebGL, which is disabled in this browser: enable graphics acceleration in its settings.');
  }
  const page = new Page(data);
  await page.start();
  connect(page);
  // For scripts: where rows are on the screen, and which rows are shown, selected and new.
  window.tsee = {
    screen: (row) => page.scene.toScreen(page.scene.x[row], page.scene.y[row]),
    screenOf: (x, y) => page.scene.toScreen(...page.scene.fromMap(x, y)),
    selected: () => page.selected && [...page.selected],
    shown: () => page.scene.above,
    drawn: () => page.scene.drawing,
    added: () => page.additions.rows(),
  };
}

main().catch((error) => refuse(`The map could not be opened: ${error.message}`));
