// The renderer of regl-scatterplot blends in textures of floats, which iPhones cannot do (they have no EXT_float_blend).
// This one has the same interface, draws directly to a canvas, and has less to do.

import createRegl from 'regl';

export function createRenderer() {
  const canvas = document.createElement('canvas');
  const gl = canvas.getContext('webgl', { antialias: false });
  const regl = createRegl({ gl, extensions: ['OES_texture_float'], optionalExtensions: ['OES_element_index_uint'] });
  const draws = new Set();
  regl.frame(() => draws.forEach((draw) => draw()));

  function resize(width = window.innerWidth, height = window.innerHeight) {
    canvas.width = width * window.devicePixelRatio;
    canvas.height = height * window.devicePixelRatio;
    regl.poll();
  }
  window.addEventListener('resize', () => resize());
  resize();

  return {
    canvas,
    regl,
    gamma: 1,
    isSupported: true,
    isDestroyed: false,
    resize,
    refresh: regl.poll,
    destroy: regl.destroy,
    onFrame(draw) {
      draws.add(draw);
      return () => draws.delete(draw);
    },
    // Draws, and copies the middle of this canvas to the visible one.
    render(draw, target) {
      regl.clear({ color: [0, 0, 0, 0], depth: 1 });
      draw();
      const context = target.getContext('2d');
      const { width, height } = target;
      context.clearRect(0, 0, width, height);
      context.drawImage(canvas, (canvas.width - width) / 2, (canvas.height - height) / 2, width, height, 0, 0, width, height);
    },
  };
}
