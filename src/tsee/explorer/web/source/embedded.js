// A page inside a notebook: it tells the notebook what is selected and which column colors the points, and hears it.

const greeted = new Promise((resolve) => {
  addEventListener('message', ({ source, data, ports }) => {
    if (source === parent && data?.tsee && ports[0]) resolve({ state: data.tsee, port: ports[0] });
  });
});

// Only pages that were made for a notebook speak to what they are embedded in.
export async function connect(page) {
  if (!page.data.embedded || parent === window) return;
  const { state, port } = await greeted;
  let hearing = false;
  const hear = ({ theme, color, selection }) => {
    hearing = true;
    if (theme) page.setTheme(theme, false);
    const index = page.colorable.findIndex((column) => column.name === color);
    if (index >= 0 && page.colorable[index] !== page.column) page.colorBy(index);
    if (selection) page.select(selection);
    hearing = false;
  };
  hear(state);
  port.onmessage = ({ data }) => hear(data);
  page.tell = (message) => {
    if (!hearing) port.postMessage(message);
  };
}
