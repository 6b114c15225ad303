// Opens the page: unpacks its data, and draws it.

import { connect } from './embedded.js';
import { Page } from './page.js';
import { unpack } from './payload.js';

function refuse(sentence) {
  const line = document.getElementById('loading');
  line.textContent = sentence;
  line.setAttribute('role', 'alert');
}

async function main() {
  if (typeof DecompressionStream === 'undefined') {
    return refuse('This browser is too old for the map: open the file in a browser from 2023 or later.');
  }
  const payload = document.getElementById('payload');
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
    names: () => page.written,
    pictures: () => page.painted,
    link: () => page.fragment.text(),
  };
}

main().catch((error) => refuse(`The map could not be opened: ${error.message}`));
