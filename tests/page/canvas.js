// What a page draws on the canvas of its timeline's rows: the shapes of the newest picture, as the browser was told to draw them.

/** @typedef {import('playwright-core').Page} Page */

/**
 * A rectangle, or a path that was filled or stroked; coordinates in pixels of the page.
 * @typedef {{what: 'rect' | 'fill' | 'stroke', path: [call: string, ...at: number[]][], color: string, alpha: number}} Shape
 */

/**
 * Has a page keep what it draws; before it is opened.
 * @param {Page} page
 */
export function keepShapes(page) {
  return page.addInitScript(() => {
    /** @type {Shape[]} */
    let shapes = [];
    /** @type {Shape['path']} */
    let path = [];
    Object.assign(window, {shapes: () => shapes});
    const own = CanvasRenderingContext2D.prototype;
    /** @param {string} name @param {(ctx: CanvasRenderingContext2D, args: number[]) => void} keep */
    const watch = (name, keep) => {
      const {[name]: call} = /** @type {Record<string, Function>} */ (/** @type {unknown} */ (own));
      Object.assign(own, {
        /** @this {CanvasRenderingContext2D} @param {number[]} args */
        [name](...args) {
          if (this.canvas.classList.contains('tl-rows')) keep(this, args);
          return call.apply(this, args);
        },
      });
    };
    /** @param {Shape['what']} what @param {string | CanvasGradient | CanvasPattern} color @param {Shape['path']} path @param {number} alpha */
    const add = (what, color, path, alpha) => shapes.push({what, path, color: String(color), alpha});
    // Each picture begins with this.
    watch('setTransform', () => { shapes = []; });
    watch('beginPath', () => { path = []; });
    for (const name of ['moveTo', 'lineTo', 'bezierCurveTo']) watch(name, (_, at) => path.push([name, ...at]));
    watch('fillRect', (ctx, at) => add('rect', ctx.fillStyle, [['rect', ...at]], ctx.globalAlpha));
    watch('fill', ctx => add('fill', ctx.fillStyle, path, ctx.globalAlpha));
    watch('stroke', ctx => add('stroke', ctx.strokeStyle, path, ctx.globalAlpha));
  });
}

/**
 * The shapes of the newest picture, once what was asked for is drawn.
 * @param {Page} page @returns {Promise<Shape[]>}
 */
export function shapes(page) {
  return page.evaluate(async () => {
    for (let i = 0; i < 2; i += 1) await new Promise(drawn => requestAnimationFrame(drawn));
    return /** @type {{shapes: () => Shape[]}} */ (/** @type {unknown} */ (window)).shapes();
  });
}
