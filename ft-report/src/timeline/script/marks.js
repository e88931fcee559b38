// @ts-check
// Where events of a kind are: lines through all rows, at every scale.

/** @typedef {import("./paint.js").Painter} Painter */

/**
 * How many events of a kind share each pixel: to the pixel from afar, where a bucket is none, and where the spans are there; else
 * as wide as the bucket in which they are.
 * @param {Painter} painter @param {number} kind @returns {Map<number, number>}
 */
export function density(painter, kind) {
  const { model, view, windows, close } = painter;
  const { width, count } = model.head.level, sums = model.countsOf(kind);
  /** @type {Map<number, number>} */
  const columns = new Map();
  /** @param {number} x @param {number} n */
  const add = (x, n) => columns.set(x, (columns.get(x) ?? 0) + n);
  /** Events of a bucket that windows have: its others are elsewhere. @type {Map<number, number>} */
  const seen = new Map();
  for (const window of windows) {
    for (const { events } of window.threads) {
      for (let i = 0; i < events.n; i++) {
        const t = events.start[i];
        if (events.a[i] !== kind) continue;
        const bucket = Math.floor(t / width);
        seen.set(bucket, (seen.get(bucket) ?? 0) + 1);
        if (t >= view.from && t <= view.to) add(Math.floor(painter.x(t)), 1);
      }
    }
  }
  if (!sums) return columns;
  for (const { from, to } of painter.uncovered()) {
    for (let i = Math.max(0, Math.floor(from / width)); i < count && i * width < to; i++) {
      const n = sums[i + 1] - sums[i] - (seen.get(i) ?? 0);
      if (n <= 0) continue;
      const first = Math.floor(painter.x(Math.max(from, i * width)));
      const end = close ? Math.ceil(painter.x(Math.min(to, (i + 1) * width))) : 0;
      const last = Math.max(first + 1, end);
      for (let x = first; x < last; x++) add(x, n / (last - first));
    }
  }
  return columns;
}

/**
 * Draws them: the stronger, the more of them share a pixel.
 * @param {Painter} painter @param {number} kind @param {number} height
 */
export function mark(painter, kind, height) {
  const { ctx, theme } = painter;
  const columns = density(painter, kind), most = Math.log1p(Math.max(1, ...columns.values()));
  ctx.fillStyle = theme.hue(kind + 11);
  for (const [x, n] of columns) {
    // One of many is still seen.
    ctx.globalAlpha = 0.3 + 0.7 * Math.min(Math.log1p(n) / most, 1);
    ctx.fillRect(x, 0, 1, height);
  }
  ctx.globalAlpha = 1;
}
