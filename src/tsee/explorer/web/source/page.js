// The page: the legend, the filters, the search and the selection decide which points are shown.

import { Additions } from './additions.js';
import { Card } from './card.js';
import { FAINT } from './colors.js';
import { columnsOf, counted, many, plain, searched, trustColumns } from './columns.js';
import { contours, MIN_POINTS, paintContours } from './contours.js';
import { boxOf, disc, hull, rings } from './drawing.js';
import { csvLine, download, h, icon, iconButton, later } from './elements.js';
import { Filters } from './filters.js';
import { Fragment } from './fragment.js';
import { help } from './help.js';
import { islands } from './islands.js';
import { act } from './keys.js';
import { Legend } from './legend.js';
import { paintNames, topicsOf } from './names.js';
import { Pictures } from './pictures.js';
import { Point } from './point.js';
import { nameOf, Reading } from './reading.js';
import { Scene } from './scene.js';
import { LOOKS, remember, remembered } from './theme.js';
import { Versions, versionsIn } from './versions.js';

const $ = (name) => document.getElementById(name);
const narrow = matchMedia('(max-width: 640px)');
// On a wider window, a selection can be read at once.
const WIDE = 900;

export class Page {
  constructor(data) {
    this.data = data;
    this.columns = columnsOf(data);
    this.colorable = [...this.columns.filter((column) => column.kind !== 'text'), ...trustColumns(data)];
    const own = this.colorable.filter((column) => !column.own);
    this.first = own.find((column) => column.name === data.color) || own[0] || null; // colors the points unless a link says otherwise
    this.column = this.first;
    this.tell = () => {}; // the notebook that the page is in
    this.selected = null; // row numbers, or null
    this.found = null; // 1 for rows that the search found, or null
    this.pins = []; // {name, rows}
    this.hovered = this.pointed = -1;
    this.on = { exemplars: false, names: true, pictures: true, contours: data.rows >= MIN_POINTS };
    this.theme = remembered() || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
    document.documentElement.dataset.theme = this.theme;

    this.scene = new Scene($('map'), $('overlay'), data);
    this.pictures = data.pictures && new Pictures(data);
    this.card = new Card($('card'), this.columns, this.pictures);
    this.topics = topicsOf(data, this.scene);
    this.exemplars = data.arrays.exemplars && this.inScene(data.arrays.exemplars);
    this.details = new Point(this, $('point'));
    this.reading = new Reading(this, $('reading'));
    $('heading').querySelector('h1').textContent = data.title;
    this.buildPanel();
    this.buildTools();
    this.additions = new Additions(this, $('additions'));
    this.fragment = new Fragment(this);
    this.listen();
  }

  get look() {
    return { ...LOOKS[this.theme], font: 'ui-sans-serif, system-ui, sans-serif' };
  }

  get atHome() {
    return this.scene.isHome;
  }

  inScene(positions) {
    const x = new Float32Array(positions.length / 2);
    const y = new Float32Array(positions.length / 2);
    for (let i = 0; i < x.length; i++) [x[i], y[i]] = this.scene.fromMap(positions[2 * i], positions[2 * i + 1]);
    return { x, y };
  }

  async start() {
    this.scene.above = this.scene.n;
    this.sayCounts();
    this.inset(); // now that everything is written
    await this.scene.resize();
    this.setTheme(this.theme);
    this.inset();
    this.scene.look(undefined, false);
    await this.fragment.follow(); // draws the points
    document.body.classList.add('ready');
    $('loading').remove();
  }

  // ---- parts ----

  buildPanel() {
    const panel = $('panel');
    const searchable = this.columns.some((column) => column.kind !== 'number' || column.date);
    if (searchable) {
      this.field = h('input', {
        type: 'search',
        id: 'search',
        placeholder: 'Search',
        title: 'All words must occur; "quoted words" together. Enter selects what is found.',
        'aria-label': 'Search names and texts. Enter selects what is found.',
        autocomplete: 'off',
        spellcheck: false,
        oninput: later(150, () => this.search(this.field.value)),
        onkeydown: (event) => {
          if (event.key !== 'Enter') return;
          event.preventDefault(); // or it would press the button that gets the focus
          this.selectFound();
        },
      });
      this.matches = h('button', { type: 'button', className: 'matches', title: 'List them (Enter)', onclick: () => this.selectFound() });
      panel.append(h('label', { className: 'search' }, icon('search'), this.field, h('output', {}, this.matches)));
    }
    const versions = versionsIn(this.columns);
    this.versions = versions && new Versions(versions, () => this.update());
    if (versions) panel.append(this.versions.element);
    this.legend = new Legend(h('div', { className: 'legend' }), this.data.colors, () => this.update());
    if (this.colorable.length) {
      this.chooser = h(
        'select',
        { id: 'color', 'aria-label': 'Color by', onchange: (event) => this.colorBy(Number(event.target.value)) },
        this.column ? null : h('option', { value: '-1' }, 'Color by …'),
        this.colorable.map((column, index) => h('option', { value: String(index) }, column.name)),
      );
      this.chooser.value = String(this.colorable.indexOf(this.column));
      this.all = h('button', { type: 'button', className: 'text', hidden: true, onclick: () => this.legend.reset() }, 'Show all');
      const fixed = this.colorable.length === 1 && this.column && h('strong', { id: 'color' }, this.column.name);
      panel.append(h('div', { className: 'chooser' }, fixed || this.chooser, this.all));
    }
    this.filters = new Filters(this.colorable, this.data.colors, () => this.update());
    panel.append(this.legend.element, this.filters.element);
    panel.hidden = !searchable && !this.colorable.length;
  }

  buildTools() {
    const tool = (name, label, key) =>
      iconButton(name, `${label} (${key})`, () => this.setTool(name), { 'data-tool': name, 'aria-pressed': 'false' });
    const layer = (name, label, key, there = true) => there && iconButton(name, `${label} (${key})`, () => this.toggle(name), { 'aria-pressed': String(this.on[name]), id: name });
    this.layers = {
      exemplars: this.exemplars && layer('exemplars', `Show the ${many(this.exemplars.x.length, 'exemplar')}`, 'E'),
      names: layer('names', 'Names on the map', 'T'),
      pictures: layer('pictures', 'Pictures on the map, when zoomed in', 'P', this.pictures),
      contours: layer('contours', 'Lines of equal density', 'C', this.data.rows >= MIN_POINTS),
    };
    this.themeButton = h('button', { type: 'button', className: 'icon', id: 'theme', onclick: () => this.setTheme() });
    const placeButton = h(
      'button',
      { type: 'button', id: 'place', title: 'Place new rows on the map (N)', onclick: () => this.additions.open() },
      icon('drop'),
      h('span', {}, 'Place new rows'),
    );
    const linkButton = !this.data.embedded && iconButton('link', 'Copy a link to this view', () => this.copyLink(), { id: 'link' });
    $('tools').append(
      h('div', { className: 'group' }, tool('pan', 'Move', 'V'), tool('lasso', 'Lasso', 'L'), tool('box', 'Box', 'B')),
      h(
        'div',
        { className: 'group zoom' },
        iconButton('minus', 'Zoom out (−)', () => this.scene.zoomBy(1 / 1.6)),
        iconButton('fit', 'Whole map (0)', () => this.scene.look(), { id: 'fit' }),
        iconButton('plus', 'Zoom in (+)', () => this.scene.zoomBy(1.6)),
      ),
      h('div', { className: 'group' }, Object.values(this.layers), linkButton, this.themeButton, iconButton('help', 'Help (?)', () => help(this.data))),
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
    this.filters.setTheme(theme);
    if (changed) {
      if (kept) remember(theme);
      this.reread();
      this.update();
    }
  }

  toggle(layer) {
    if (!this.layers[layer]) return;
    this.on[layer] = !this.on[layer];
    this.layers[layer].setAttribute('aria-pressed', String(this.on[layer]));
    this.scene.redraw();
  }

  colorBy(index) {
    this.column = this.colorable[index] ?? null;
    this.chooser.value = String(index);
    this.legend.show(this.column, this.theme);
    if (this.column && !this.column.own) this.tell({ color: this.column.name });
    this.reread();
    this.update();
  }

  search(text) {
    this.found = searched(this.columns, text, this.data.rows);
    this.update();
  }

  // The rows that the search found and that are shown become the selection.
  selectFound() {
    this.found = searched(this.columns, this.field.value, this.data.rows);
    if (!this.found) return;
    this.selected = null;
    this.update();
    this.select(this.shownRows());
    if (this.selected) this.openReading();
  }

  shownRows(inside = () => true) {
    const rows = [];
    this.scene.shown.forEach((shown, row) => shown && inside(row) && rows.push(row));
    return rows;
  }

  // The rows in view become the selection: a selection without a pointer.
  selectView() {
    const { scene } = this;
    const { left, top, right, bottom } = this.free();
    const [x0, y0] = scene.fromScreen(left, bottom);
    const [x1, y1] = scene.fromScreen(right, top);
    this.select(this.shownRows((row) => scene.x[row] >= x0 && scene.x[row] <= x1 && scene.y[row] >= y0 && scene.y[row] <= y1));
  }

  select(rows) {
    this.selected = rows && rows.length ? [...rows].sort((a, b) => a - b) : null;
    this.tell({ selection: this.selected || [] });
    this.details.close();
    if (!this.selected) this.reading.close();
    else if (innerWidth >= WIDE || this.reading.open) this.openReading(false);
    this.update();
  }

  openReading(focus = true) {
    const home = this.atHome;
    this.reading.show(this.selected);
    if (focus) this.reading.element.querySelector('button.line')?.focus({ preventScroll: true });
    this.makeRoom(home, boxOf(this.selected, this.scene.x, this.scene.y));
  }

  closeReading() {
    const home = this.atHome;
    this.reading.close();
    this.makeRoom(home);
    this.scene.redraw();
  }

  // What is read changes with the colors.
  reread() {
    if (this.reading.open) this.reading.show(this.reading.rows);
    if (this.details.row >= 0) this.details.show(this.details.row);
  }

  // A row, in full. If it is not in view, the map goes there.
  open(row, go = true) {
    const home = this.atHome;
    this.details.show(row);
    this.card.hide();
    this.inset();
    const { scene } = this;
    const [left, top] = scene.toScreen(scene.x[row], scene.y[row]);
    const room = this.free();
    const hidden = left < room.left || left > room.right || top < room.top || top > room.bottom;
    if (go && home) scene.look();
    else if (go && hidden) scene.panTo(row, room);
    scene.redraw();
    this.fragment.write();
  }

  close() {
    const home = this.atHome;
    this.details.close();
    this.makeRoom(home);
    this.scene.redraw();
    this.fragment.write();
  }

  // Nothing that one has just chosen may be under a panel.
  makeRoom(home, box) {
    this.inset();
    if (home) return this.scene.look();
    if (!box) return;
    const room = this.free();
    const [left] = this.scene.toScreen(box.x, box.y);
    if (left < room.left && left + box.width * this.scene.unit > 0) this.scene.panBy(Math.min(room.left - left + 12, room.right - left), 0);
  }

  point(row) {
    this.pointed = row;
    this.scene.redraw();
  }

  // ---- pins ----

  pin() {
    const name = nameOf(this.columns, this.selected, this.data.rows, this.pins.length + 1);
    this.pins.push({ name, rows: this.selected });
    this.sayPins();
    this.scene.redraw();
    this.fragment.write();
  }

  sayPins() {
    const chip = (pin) =>
      h(
        'span',
        { className: 'chip' },
        h('button', { type: 'button', title: 'Select these rows again', onclick: () => this.select(pin.rows) }, pin.name, h('small', {}, counted(pin.rows.length))),
        iconButton('close', `Remove the pin ${pin.name}`, () => {
          this.pins.splice(this.pins.indexOf(pin), 1);
          this.sayPins();
          this.scene.redraw();
          this.fragment.write();
        }),
      );
    $('pins').replaceChildren(...this.pins.map(chip));
    this.inset();
  }

  async copyLink() {
    this.fragment.put();
    const button = $('link');
    try {
      await navigator.clipboard.writeText(location.href);
      button.title = 'Copied';
    } catch {
      button.title = 'The link is in the address bar'; // no clipboard for files in this browser
    }
    button.classList.add('done');
    setTimeout(() => {
      button.classList.remove('done');
      button.title = 'Copy a link to this view';
    }, 1500);
  }

  // ---- showing ----

  // Shows the points that the legend, the filters, the search and the selection leave.
  async update() {
    const { shown } = this.scene;
    shown.fill(1);
    this.versions?.hide(shown);
    this.legend.hide(shown);
    this.filters.hide(shown);
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
    this.islands = this.column?.kind === 'category' && this.column.names.length > 1 ? islandsOf(this) : [];
    this.layers.names.hidden = !this.islands.length && !this.topics.length;
    this.lines = this.layers.contours ? contours(this.scene.x, this.scene.y, shown) : null;
    this.saySelection();
    this.inset();
    const plain = { codes: this.legend.codes(this.data.rows), colors: this.legend.colors, older: null };
    const { codes, colors, older } = this.versions?.colored(plain.codes, plain.colors, this.look.ground, this.theme) ?? plain;
    const absent = this.versions?.one ? (row) => !this.versions.isThere(row) : null;
    const drawn = this.scene.color(codes, colors, FAINT[this.theme], { older, absent });
    this.sayCounts();
    this.fragment.write();
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
    const button = (text, onclick, more = {}) => h('button', { type: 'button', className: 'text', onclick, ...more }, text);
    bar.replaceChildren(
      h('strong', {}, many(this.selected.length, 'row')),
      button('Read', () => this.openReading(), { id: 'read' }),
      button('Pin', () => this.pin(), { id: 'pin' }),
      button('Zoom in', () => this.lookAtRows(this.selected)),
      button(narrow.matches ? 'CSV' : 'Download CSV', () => this.saveSelection(), { id: 'save' }),
      iconButton('close', 'Clear the selection (Esc)', () => this.select(null)),
    );
  }

  saveSelection() {
    const lines = [csvLine(['row', ...this.columns.map((column) => column.name), 'tsee0', 'tsee1'])];
    for (const row of this.selected) {
      const [x, y] = this.scene.toMap(this.scene.x[row], this.scene.y[row]);
      lines.push(csvLine([String(row), ...this.columns.map((column) => column.raw(row)), plain(x), plain(y)]));
    }
    download('selection.csv', lines);
  }

  lookAtRows(rows) {
    const { x, y } = this.scene;
    this.scene.look(boxOf(rows, x, y), true, 1.2);
  }

  // The part of the window that the panels leave free for the map.
  inset() {
    const box = (name) => $(name).getBoundingClientRect();
    $('left').style.top = narrow.matches ? '' : `${box('heading').bottom + 10}px`;
    const [panel, heading, tools, left] = ['panel', 'heading', 'tools', 'left'].map(box);
    const below = innerHeight - (panel.height && narrow.matches ? panel.top : tools.top);
    const sheet = left.height > 0;
    this.scene.insets = narrow.matches
      ? { top: heading.bottom, right: 12, bottom: sheet ? innerHeight - left.top : below, left: 12 }
      : { top: heading.bottom, right: panel.width ? innerWidth - panel.left + 8 : 24, bottom: below + 8, left: Math.max(24, sheet ? left.right + 8 : 0) };
  }

  free() {
    const { top, right, bottom, left } = this.scene.insets;
    return { left, top, right: this.scene.width - right, bottom: this.scene.height - bottom };
  }

  // Boxes in which nothing is written on the map.
  blocked() {
    return ['heading', 'panel', 'tools', 'left', 'selection'].map((name) => $(name).getBoundingClientRect()).filter((box) => box.width && box.height);
  }

  // ---- the pointer and the keys ----

  at(position) {
    const radius = Math.max(9, this.scene.size + 4) / this.scene.unit;
    return this.scene.grid.nearest(...this.scene.fromScreen(...position), radius, this.scene.shown);
  }

  hover(at) {
    const added = at ? this.additions.at(at) : -1;
    if (added >= 0) {
      this.hovered = -1;
      this.additions.card(added, this.card, at);
      this.scene.redraw();
      return;
    }
    const row = at ? this.at(at) : -1;
    if (row < 0) this.card.hide();
    else if (row === this.hovered && !this.card.element.hidden) this.card.moveTo(at);
    else this.card.row(row, at, this.column, this.legend.colorOf(row));
    if (row !== this.hovered) {
      this.hovered = row;
      document.body.classList.toggle('over', row >= 0);
      this.scene.redraw();
    }
  }

  tap(at) {
    const row = this.additions.at(at) >= 0 ? -1 : this.at(at);
    if (row >= 0) this.open(row);
    else if (this.details.row >= 0) this.close();
  }

  paint(context) {
    const { scene, look, on } = this;
    const blocked = this.blocked();
    if (this.lines && on.contours) paintContours(context, scene, this.lines, look);
    if (on.exemplars) rings(context, scene, this.exemplars, look);
    for (const pin of this.pins) hull(context, scene, pin, look);
    this.additions?.paint(context);
    this.written = [];
    if (on.names && !this.found && !this.selected) {
      const names = { islands: this.islands || [], topics: this.versions?.one ? [] : this.topics, colored: this.column?.index, named: true };
      this.written = paintNames(context, scene, names, this.legend.colors, this.legend.only, look, blocked);
    }
    this.painted = [];
    if (this.pictures && on.pictures && scene.zoom > 1.2) {
      const taken = [...blocked, ...this.written.map(({ box: [left, top, right, bottom] }) => ({ left, top, right, bottom }))];
      this.painted = this.pictures.paint(context, scene, (row) => this.legend.colorOf(row), taken);
    }
    this.details.paint(context);
    for (const row of [this.hovered, this.pointed]) {
      if (row < 0) continue;
      const [left, top] = scene.toScreen(scene.x[row], scene.y[row]);
      disc(context, left, top, 6.5, this.legend.colorOf(row), look.ground, 2.5);
      disc(context, left, top, 7.5, null, look.ink, 1);
    }
  }

  listen() {
    const { scene } = this;
    scene.on('hover', (at) => this.hover(at));
    scene.on('tap', (at) => this.tap(at));
    scene.on('view', () => {
      this.card.hide();
      this.fragment.write();
    });
    scene.on('paint', (context) => this.paint(context));
    scene.on('lasso', (rows) => {
      this.select(rows);
      if (rows.length) this.setTool('pan');
    });
    addEventListener('keydown', (event) => act(this, event));
    addEventListener('resize', () => this.inset());
  }
}

function islandsOf(page) {
  if (page.versions?.one) return islands(...page.versions.present(page.column, page.scene.x, page.scene.y));
  page.column.islands ??= islands(page.column, page.scene.x, page.scene.y);
  return page.column.islands;
}
