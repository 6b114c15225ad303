// New rows: dropped, chosen or pasted, placed by the worker, drawn over the map, listed and downloaded.

import workerSource from '../node_modules/.built/worker.txt';
import { counted, many, plain } from './columns.js';
import { boxOf, disc } from './drawing.js';
import { csvLine, download, h, icon, iconButton } from './elements.js';

// A row is unlike the data of the map if it is farther from its nearest exemplars than this share of known rows.
const NOVEL = 0.99;
const LINE = 30; // the height of a line of the list, in pixels
const MAX_LINES = 16; // of the card of a new row
const HOVER_RADIUS = 10; // pixels

export class Additions {
  constructor(page, element) {
    this.page = page;
    this.element = element;
    this.model = page.data.model;
    this.batch = null;
    this.listen();
  }

  // For scripts: the positions and the novelty of the new rows.
  rows() {
    if (!this.batch) return null;
    const { positions, novelty } = this.batch;
    return { positions: Array.from(positions), novelty: novelty && Array.from(novelty) };
  }

  // ---- taking rows ----

  listen() {
    const veil = document.getElementById('veil');
    let inside = 0;
    const files = (event) => [...(event.dataTransfer?.types || [])].includes('Files');
    addEventListener('dragenter', (event) => {
      if (!files(event)) return;
      event.preventDefault();
      inside++;
      veil.classList.add('on');
    });
    addEventListener('dragover', (event) => files(event) && event.preventDefault());
    addEventListener('dragleave', (event) => {
      if (files(event) && --inside <= 0) veil.classList.remove('on');
    });
    addEventListener('drop', (event) => {
      if (!files(event)) return;
      event.preventDefault();
      inside = 0;
      veil.classList.remove('on');
      this.take(event.dataTransfer.files[0]);
    });
    addEventListener('paste', (event) => {
      if (event.target.closest?.('input, textarea')) return;
      const file = event.clipboardData.files[0];
      const text = event.clipboardData.getData('text');
      if (file) this.take(file);
      else if (text.trim()) this.place(text, 'pasted rows');
    });
  }

  open() {
    this.dialog?.close();
    const { model } = this;
    const chooser = h('input', {
      type: 'file',
      id: 'file',
      accept: '.csv,.tsv,.tab,.txt,.data,.gz,text/csv,text/plain',
      onchange: () => chooser.files[0] && this.take(chooser.files[0]),
    });
    const text = h('textarea', {
      rows: 4,
      spellcheck: false,
      placeholder: '… or paste rows here, with a header',
      'aria-label': 'Rows to place, as CSV',
    });
    this.said = h('p', { className: 'said', role: 'alert', hidden: true });
    this.bar = h('progress', { max: 1, value: 0, hidden: true, 'aria-label': 'Placing rows' });
    const dialog = (this.dialog = h(
      'dialog',
      {
        className: 'place',
        onclose: () => dialog.remove(),
        onclick: (event) => event.target === dialog && dialog.close(),
      },
      h('h2', {}, 'Place new rows'),
      model
        ? [
            h('p', {}, 'This page contains the network that made the map. It places your rows here, in your browser: nothing is sent anywhere.'),
            h('label', { className: 'drop', htmlFor: 'file' }, icon('drop'), h('span', {}, h('b', {}, 'Choose a CSV file'), ' or drop it anywhere on this page'), chooser),
            text,
            this.expected(),
          ]
        : h('p', {}, 'The page cannot place rows on this map. Place them with Python: estimator.transform(rows).'),
      this.bar,
      this.said,
      h(
        'div',
        { className: 'buttons' },
        h('button', { type: 'button', className: 'plain', onclick: () => dialog.close() }, 'Close'),
        model && h('button', { type: 'button', className: 'strong', id: 'go', onclick: () => text.value.trim() && this.place(text.value, 'pasted rows') }, 'Place pasted rows'),
      ),
    ));
    document.body.append(dialog);
    dialog.showModal();
  }

  expected() {
    const { features, nFeatures, table } = this.model;
    if (!features) {
      const columns = table ? many(table.order.length, 'column') : many(nFeatures, 'numeric column');
      return h('p', { className: 'quiet' }, `Expected: ${columns}, in the order of the data that the map was learned from.`);
    }
    const first = features.slice(0, 12);
    return h(
      'p',
      { className: 'quiet expected' },
      `Expected: ${many(features.length, 'column')}, in any order. Other columns are kept${table ? ', and fields can be empty' : ''}. `,
      first.map((name) => h('code', {}, name)),
      features.length > first.length ? ` and ${counted(features.length - first.length)} more` : '',
    );
  }

  async take(file) {
    if (!this.model) return this.open();
    this.place(await file.arrayBuffer(), file.name);
  }

  // ---- placing them ----

  start() {
    if (this.worker) return;
    const url = URL.createObjectURL(new Blob([workerSource], { type: 'text/javascript' }));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    const { arrays } = this.page.data;
    const needed = ['mean', 'spread', 'basis', 'exemplarInputs', 'exemplarPositions', 'noveltyShares', 'noveltyDistances', 'table.mean', 'table.axes'];
    for (const step of this.model.steps) needed.push(step.weight, step.bias);
    this.worker.postMessage({
      kind: 'begin',
      model: this.model,
      arrays: Object.fromEntries(needed.filter((name) => arrays[name]).map((name) => [name, arrays[name].slice()])),
    });
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => this.refuse(`The rows could not be placed: ${event.message || 'the worker failed'}.`);
  }

  place(content, source) {
    if (!this.model) return this.open();
    if (!this.dialog?.open) this.open();
    this.start();
    this.said.hidden = true;
    this.bar.hidden = false;
    this.bar.removeAttribute('value'); // until the rows are read, the time left is unknown
    this.worker.postMessage({ kind: 'place', content, source });
  }

  hear(message) {
    if (message.kind === 'progress') this.bar.value = message.share;
    else if (message.kind === 'refused') this.refuse(message.sentence);
    else this.show(message);
  }

  refuse(sentence) {
    this.bar.hidden = true;
    this.said.textContent = sentence;
    this.said.hidden = false;
  }

  show({ source, positions, novelty, columns }) {
    this.dialog?.close();
    const { scene } = this.page;
    const n = positions.length / 2;
    const x = new Float32Array(n);
    const y = new Float32Array(n);
    for (let i = 0; i < n; i++) [x[i], y[i]] = scene.fromMap(positions[2 * i], positions[2 * i + 1]);
    const novel = new Uint8Array(n);
    if (novelty) for (let i = 0; i < n; i++) novel[i] = novelty[i] > NOVEL ? 1 : 0;
    const order = Array.from({ length: n }, (_, i) => i).sort((a, b) => novel[b] - novel[a] || a - b);
    const label = columns.find((column) => new Set(column.values).size === n);
    this.batch = { source, n, positions, novelty, columns, x, y, novel, order, label, since: performance.now() };
    this.list();
    scene.stepBack(true);
    this.page.inset();
    // Show the map and the new rows, even if some are outside of it.
    const all = boxOf([...Array(n).keys()], x, y);
    const [w, t] = scene.half;
    if (all.x < -w || all.y < -t || all.x + all.width > w || all.y + all.height > t) {
      const left = Math.min(all.x, -w);
      const low = Math.min(all.y, -t);
      const right = Math.max(all.x + all.width, w);
      const high = Math.max(all.y + all.height, t);
      scene.look({ x: left, y: low, width: right - left, height: high - low });
    } else {
      scene.look();
    }
    this.drop();
  }

  // The new rows fall onto the map.
  drop() {
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    if (still) this.batch.since = -1e9;
    const step = () => {
      this.page.scene.redraw();
      if (this.batch && performance.now() - this.batch.since < 900) requestAnimationFrame(step);
    };
    step();
  }

  clear() {
    this.batch = null;
    this.element.hidden = true;
    this.page.card.hide();
    this.page.inset();
    this.page.scene.stepBack(false);
    this.page.scene.redraw();
  }

  // ---- showing them ----

  list() {
    const { batch, element, model } = this;
    const unlike = batch.novel.reduce((sum, value) => sum + value, 0);
    const inner = h('div', { style: { height: `${batch.n * LINE}px` } });
    const scroll = h('div', { className: 'rows', tabIndex: 0, 'aria-label': 'New rows', onscroll: () => fill() }, inner);
    // Only the rows in view are elements.
    const fill = () => {
      const from = Math.max(0, Math.floor(scroll.scrollTop / LINE) - 4);
      const to = Math.min(batch.n, from + Math.ceil((scroll.clientHeight || 300) / LINE) + 8);
      inner.replaceChildren(...batch.order.slice(from, to).map((row, at) => this.line(row, (from + at) * LINE)));
    };
    element.replaceChildren(
      h(
        'header',
        {},
        h('h2', { title: batch.source }, batch.source),
        iconButton('close', 'Remove the new rows', () => this.clear()),
      ),
      h('p', { className: 'quiet' }, `${many(batch.n, 'new row')}${unlike ? `, ${counted(unlike)} unlike the data of the map` : ''}`),
      scroll,
      h('button', { type: 'button', className: 'text', id: 'save-new', onclick: () => this.save() }, 'Download with positions'),
    );
    if (model.forwardOnly) {
      element.append(h('p', { className: 'quiet fine' }, 'Placed by the network alone. In Python, transform places them among the exemplars.'));
    }
    element.hidden = false;
    fill();
  }

  line(row, top) {
    const { batch } = this;
    const name = batch.label?.values[row] || `row ${counted(row)}`;
    const more = batch.columns.find((column) => column !== batch.label)?.values[row];
    return h(
      'button',
      {
        type: 'button',
        style: { top: `${top}px` },
        onclick: () => this.lookAt(row),
        onmouseenter: () => this.point(row),
        onmouseleave: () => this.point(-1),
      },
      h('i', { className: batch.novel[row] ? 'novel' : '' }),
      h('span', {}, name, more ? h('small', {}, more) : null),
      batch.novel[row] ? h('b', {}, 'unlike') : null,
    );
  }

  point(row) {
    this.pointed = row;
    this.page.scene.redraw();
  }

  lookAt(row) {
    const { x, y } = this.batch;
    const side = 0.5 / Math.max(1, Math.log10(this.page.scene.n) / 2);
    this.point(row);
    this.page.scene.look({ x: x[row] - side / 2, y: y[row] - side / 2, width: side, height: side });
  }

  // The new row at a position on the screen, or -1.
  at([left, top]) {
    if (!this.batch) return -1;
    const { x, y, n } = this.batch;
    let best = -1;
    let least = HOVER_RADIUS * HOVER_RADIUS;
    for (let i = 0; i < n; i++) {
      const [a, b] = this.page.scene.toScreen(x[i], y[i]);
      const squared = (a - left) ** 2 + (b - top) ** 2;
      if (squared < least) {
        least = squared;
        best = i;
      }
    }
    if (this.pointed !== best) this.point(best);
    return best;
  }

  card(row, card, at) {
    const { batch } = this;
    const lines = batch.columns.slice(0, MAX_LINES).map((column) => [column.name, column.values[row]]);
    if (batch.novel[row]) lines.push(['unlike the map’s data', `farther than ${(100 * Math.min(batch.novelty[row], 0.999)).toFixed(1)} % of it`]);
    card.show(null, lines, this.fill(row), `new row ${counted(row)}`, at);
  }

  // The color of the row's own category, if the file has the column that the map is colored by.
  fill(row) {
    const { column, legend } = this.page;
    if (column?.kind !== 'category') return null;
    const own = this.batch.columns.find((other) => other.name === column.name);
    const code = own ? column.names.indexOf(own.values[row].trim()) : -1;
    return code >= 0 ? legend.colors[code] : null;
  }

  paint(context) {
    if (!this.batch) return;
    const { x, y, n, novel, since } = this.batch;
    const { scene, look } = this.page;
    const base = Math.min(6, Math.max(2.6, 60 / Math.sqrt(n))) * Math.min(1.5, Math.max(1, scene.zoom ** 0.25));
    const now = performance.now() - since;
    for (let i = 0; i < n; i++) {
      const [left, top] = scene.toScreen(x[i], y[i]);
      if (left < -20 || top < -20 || left > scene.width + 20 || top > scene.height + 20) continue;
      const t = Math.min(1, Math.max(0, (now - (i / n) * 350) / 400));
      if (t === 0) continue;
      const ease = 1 - (1 - t) ** 3;
      context.globalAlpha = ease;
      const radius = base * (1 + 1.5 * (1 - ease));
      const color = this.fill(i);
      disc(context, left, top, radius + 2, look.ground, null, 0);
      if (novel[i]) {
        disc(context, left, top, radius, color || look.ground, look.ink, 1.6);
        disc(context, left, top, radius * 0.3, look.ink, null, 0);
      } else {
        disc(context, left, top, radius, color || look.ink, color ? look.ink : null, 1.4);
      }
    }
    context.globalAlpha = 1;
    if (this.pointed >= 0 && this.pointed < n) {
      const [left, top] = scene.toScreen(x[this.pointed], y[this.pointed]);
      disc(context, left, top, base + 5, null, look.ink, 1.5);
    }
  }

  save() {
    const { positions, novelty, columns, n } = this.batch;
    const head = ['row', ...columns.map((column) => column.name), 'tsee0', 'tsee1', ...(novelty ? ['novelty'] : [])];
    const lines = [csvLine(head)];
    for (let i = 0; i < n; i++) {
      lines.push(
        csvLine([
          String(i),
          ...columns.map((column) => column.values[i]),
          plain(positions[2 * i]),
          plain(positions[2 * i + 1]),
          ...(novelty ? [plain(novelty[i])] : []),
        ]),
      );
    }
    download('new-rows.csv', lines);
  }
}
