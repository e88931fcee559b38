// @ts-check
// The picture as a whole: rows and their names, the scale of time, the overview, and what is chosen in them.

import { mark } from "./marks.js";
import { MAX_ARROWS, Painter } from "./paint.js";
import { duration, moment } from "./view.js";

/** @typedef {import("./main.js").Timeline} Timeline */
/** @typedef {import("./panel.js").Pick} Pick */

/** Where time begins, and the heights of the scale and of the overview, px. */
export const LEFT = 150;
const AXIS = 22, OVERVIEW = 34;

/** @param {Timeline} timeline */
export function paint(timeline) {
  const width = timeline.stage.clientWidth, height = timeline.stage.clientHeight;
  if (width < LEFT + 50) return;
  timeline.width = width;
  const hasArrows = paintRows(timeline, width, height);
  paintAxis(timeline, width);
  paintOverview(timeline, width);
  const interval = `${duration(timeline.view.to - timeline.view.from)} from ${moment(timeline.view.from + timeline.head.offset, (timeline.view.to - timeline.view.from) / 100)}`;
  timeline.part("span").textContent = interval + (hasArrows ? "" : ` · more than ${MAX_ARROWS} wake-ups: no arrows`);
  timeline.stale = timeline.model.windowsIn(timeline.view.from, timeline.view.to).length < timeline.head.windows.filter((w) => w.from < timeline.view.to && w.to > timeline.view.from).length;
}

/** False where there are too many wake-ups for arrows. @param {Timeline} timeline @param {number} width @param {number} height */
function paintRows(timeline, width, height) {
  const { theme, model, view } = timeline;
  const ctx = context(timeline, timeline.canvas, width, height);
  const painter = new Painter(ctx, model, theme, view, LEFT, width);
  const top = timeline.stage.scrollTop;
  const sight = timeline.rows.filter((row) => row.y + row.height > top && row.y < top + height);
  ctx.save();
  ctx.beginPath();
  ctx.rect(LEFT, 0, width - LEFT, height);
  ctx.clip();
  timeline.markedKinds.forEach((kind) => mark(painter, kind, height));
  /** @type {Map<number, number>} */
  const middle = new Map();
  for (const row of sight) {
    painter.row(row, row.y - top);
    if (row.kind !== "thread") continue;
    middle.set(row.index, row.y - top + 10);
    painter.events(row.index, row.y - top + 1, (kind) => !timeline.hidden.has(kind));
  }
  painter.losses(0, height);
  const hasArrows = painter.wakes((thread) => middle.get(thread));
  paintRuler(timeline, ctx, painter, 0, height);
  if (timeline.picked) outline(timeline, ctx, painter, top);
  ctx.restore();
  for (const row of sight) {
    const y = row.y - top;
    ctx.fillStyle = theme.line;
    ctx.fillRect(0, y + row.height - 1, width, 1);
    if (row.kind === "group") {
      ctx.fillStyle = theme.group;
      ctx.fillRect(0, y, width, row.height - 1);
      ctx.font = "600 11px system-ui, sans-serif";
      painter.text(row.label, 8, y + row.height / 2, width, theme.ink);
      ctx.font = "11px system-ui, sans-serif";
    } else {
      const picked = timeline.picked?.kind === row.kind && timeline.picked.index === row.index;
      ctx.fillStyle = picked ? theme.group : theme.paper;
      ctx.fillRect(0, y, LEFT - 1, row.height - 1);
      painter.text(row.label, 14, y + 11, LEFT - 20, theme.ink);
    }
  }
  ctx.fillStyle = theme.line;
  ctx.fillRect(LEFT - 1, 0, 1, height);
  return hasArrows;
}

/** @param {Timeline} timeline @param {CanvasRenderingContext2D} ctx @param {Painter} painter @param {number} top */
function outline(timeline, ctx, painter, top) {
  const found = /** @type {Pick} */ (timeline.picked);
  const row = timeline.rows.find((r) => r.kind === found.kind && r.index === found.index);
  if (!row) return;
  const x = Math.max(painter.x(found.from), LEFT), to = Math.min(painter.x(found.to), timeline.width);
  ctx.strokeStyle = timeline.theme.ink;
  ctx.lineWidth = 2;
  ctx.strokeRect(x - 1, row.y - top + 1, Math.max(to - x, 1) + 2, row.height - 4);
}

/** @param {Timeline} timeline @param {CanvasRenderingContext2D} ctx @param {Painter} painter @param {number} y @param {number} height */
function paintRuler(timeline, ctx, painter, y, height) {
  if (!timeline.ruler) return;
  const x = painter.x(timeline.ruler.from), w = painter.x(timeline.ruler.to) - x;
  ctx.fillStyle = timeline.theme.accent;
  ctx.globalAlpha = 0.08;
  ctx.fillRect(x, y, w, height);
  ctx.globalAlpha = 1;
  ctx.fillRect(x - 0.5, y, 1, height);
  ctx.fillRect(x + w - 0.5, y, 1, height);
}

/** @param {Timeline} timeline @param {number} width */
function paintAxis(timeline, width) {
  const canvas = /** @type {HTMLCanvasElement} */ (timeline.part("axis"));
  const ctx = context(timeline, canvas, width, AXIS);
  const painter = new Painter(ctx, timeline.model, timeline.theme, timeline.view, LEFT, width);
  painter.axis(AXIS);
  ctx.fillStyle = timeline.theme.paper;
  ctx.fillRect(0, 0, LEFT, AXIS);
  painter.text("drag here to measure", 14, AXIS / 2, LEFT - 20, timeline.theme.faint);
  if (!timeline.ruler) return;
  paintRuler(timeline, ctx, painter, 0, AXIS);
  const x = Math.max(painter.x(timeline.ruler.from), LEFT);
  const says = duration(timeline.ruler.to - timeline.ruler.from), room = ctx.measureText(says).width + 12;
  ctx.fillStyle = timeline.theme.accent;
  ctx.fillRect(x, 2, room, AXIS - 6);
  painter.text(says, x + 6, AXIS / 2 - 1, room, timeline.theme.paper);
}

/** The whole trace: what its threads did, all together, where the incidents are, and what of it is in view. @param {Timeline} timeline @param {number} width */
function paintOverview(timeline, width) {
  const canvas = /** @type {HTMLCanvasElement} */ (timeline.part("overview"));
  const ctx = context(timeline, canvas, width, OVERVIEW);
  const { model, head, theme } = timeline;
  const whole = { from: 0, to: head.span };
  const painter = new Painter(ctx, model, theme, whole, LEFT, width);
  const blocked = head.states.indexOf("blocked"), colors = theme.states.map((c, i) => (i === blocked ? "" : c));
  const columns = Math.max(1, Math.floor(width - LEFT));
  if (!timeline.totals || timeline.totals.length !== columns) timeline.totals = sumColumns(timeline, columns);
  const most = Math.max(1, ...timeline.totals.map((sums) => sums.reduce((sum, ns, i) => sum + (i === blocked ? 0 : ns), 0)));
  timeline.totals.forEach((sums, x) => {
    let y = OVERVIEW - 4;
    sums.forEach((ns, state) => {
      if (!colors[state] || !ns) return;
      const hh = (ns / most) * (OVERVIEW - 12);
      ctx.fillStyle = colors[state];
      ctx.fillRect(LEFT + x, (y -= hh), 1, hh);
    });
  });
  head.incidents.forEach(({ from }, i) => {
    const x = painter.x(from);
    ctx.fillStyle = i === timeline.incident ? theme.accent : theme.ink;
    ctx.beginPath();
    ctx.moveTo(x - 3, 0);
    ctx.lineTo(x + 3, 0);
    ctx.lineTo(x, 6);
    ctx.fill();
  });
  const x = painter.x(timeline.view.from), w = Math.max(painter.x(timeline.view.to) - x, 3);
  ctx.fillStyle = theme.paper;
  ctx.globalAlpha = 0.6;
  ctx.fillRect(LEFT, 7, x - LEFT, OVERVIEW);
  ctx.fillRect(x + w, 7, width - x - w, OVERVIEW);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = theme.accent;
  ctx.strokeRect(x + 0.5, 7.5, w - 1, OVERVIEW - 9);
  ctx.fillStyle = theme.paper;
  ctx.fillRect(0, 0, LEFT - 1, OVERVIEW);
  painter.text("whole trace", 14, OVERVIEW / 2 + 2, LEFT - 20, theme.faint);
}

/** @param {Timeline} timeline @param {number} columns @returns {number[][]} */
function sumColumns(timeline, columns) {
  const { model, head } = timeline;
  const { firstThread } = model;
  return Array.from({ length: columns }, (_, x) => {
    const sums = head.states.map(() => 0);
    const from = (x * head.span) / columns, to = ((x + 1) * head.span) / columns;
    for (let t = 0; t < head.threads.length; t++) model.shares(firstThread + t, from, to).forEach((ns, s) => (sums[s] += ns ?? 0));
    return sums;
  });
}

/**
 * A canvas with as many pixels as it has on the screen.
 * @param {Timeline} timeline @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 */
function context(timeline, canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, hh] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== hh) {
    [canvas.width, canvas.height] = [w, hh];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = timeline.theme.paper;
  ctx.fillRect(0, 0, width, height);
  return ctx;
}
