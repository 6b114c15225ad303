// A page of tsee inside a notebook: the page itself in a frame, and what is selected on it.

function themeOf() {
  const { jpThemeLight } = document.body.dataset; // JupyterLab
  if (jpThemeLight) return jpThemeLight === 'false' ? 'dark' : 'light';
  if (document.body.matches('.vscode-dark, .vscode-high-contrast')) return 'dark';
  if (document.body.matches('.vscode-light')) return 'light';
  return null;
}

function render({ model, el }) {
  const frame = document.createElement('iframe');
  frame.title = 'Map';
  frame.allow = 'clipboard-write';
  frame.style.cssText = 'display: block; width: 100%; border: 0; border-radius: 6px';
  const resize = () => (frame.style.height = `${model.get('height')}px`);
  resize();
  let page = null; // the frame's port, once it is ready
  const hear = ({ data }) => {
    for (const name of ['selection', 'color']) if (name in data) model.set(name, data[name]);
    model.save_changes();
  };
  const say = (name) => page?.postMessage({ [name]: model.get(name) });
  const sayColor = () => say('color');
  const saySelection = () => say('selection');
  frame.addEventListener('load', () => {
    const channel = new MessageChannel();
    page = channel.port1;
    page.onmessage = hear;
    const state = { theme: themeOf(), color: model.get('color'), selection: model.get('selection') };
    frame.contentWindow.postMessage({ tsee: state }, '*', [channel.port2]);
  });
  model.on('change:color', sayColor);
  model.on('change:selection', saySelection);
  model.on('change:height', resize);
  frame.srcdoc = model.get('_page');
  el.append(frame);
  return () => {
    model.off('change:color', sayColor);
    model.off('change:selection', saySelection);
    model.off('change:height', resize);
    page?.close();
  };
}

export default { render };
