// @ts-check
// Draws rows on a canvas: spans where a pixel is shorter than a bucket and they are there, else what share of a pixel
// or bucket each state had.

import { lockName, stack, threadName, WAITERS, LANE } from "./layout.js";
import { touching } from "./model.js";
import { moment, ticks } from "./view.js";

/** @typedef {import("./types.js").Lane} Lane */
/** @typedef {import("./types.js").View} View */
/** @typedef {import("./types.js").Window} Window */
/** @typedef {import("./layout.js").Placed} Placed */
/** @typedef {import("./layout.js").Band} Band */
/** @typedef {import("./model.js").Model} Model */

/**
 * @typedef {object} Theme
 * @property {string[]} states  By number of the state.
 * @property {string} ink
 * @property {string} faint
 * @property {string} line
 * @property {string} paper
 * @property {string} group
 * @property {string} accent
 * @property {string} other
 * @property {string} irq
 * @property {string} wait
 * @property {string} dark  Of text on coloured ground.
 * @property {(state: number) => string} on  Of text on the ground of a state.
 * @property {(n: number) => string} hue  For things that are told apart by number alone.
 */

const FONT = "11px system-ui, sans-serif";

/** How many colours a lane has, and which. @typedef {{color: (i: number) => string, text: (i: number) => string, ink?: (i: number) => string, hatch?: (i: number) => boolean}} Look */

export class Painter {
  /**
   * @param {CanvasRenderingContext2D} ctx @param {Model} model @param {Theme} theme
   * @param {View} view @param {number} left  Where time begins, px. @param {number} width  Of all, px.
   */
  constructor(ctx, model, theme, view, left, width) {
    Object.assign(this, { ctx, model, theme, view, left, width });
    this.ctx = ctx;
    this.model = model;
    this.theme = theme;
    this.view = view;
    this.left = left;
    this.width = width;
    this.scale = (width - left) / (view.to - view.from);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    /** A pixel is shorter than a bucket: spans are worth looking at. */
    this.close = 1 / this.scale < model.head.level.width;
    /** @type {Window[]} */
    this.windows = this.close ? model.windowsIn(view.from, view.to) : [];
  }

  /** @param {number} t */
  x(t) {
    return this.left + (t - this.view.from) * this.scale;
  }

  /** @param {string} text @param {number} x @param {number} y @param {number} room @param {string} color */
  text(text, x, y, room, color) {
    const { ctx } = this;
    if (room < 14 || text === "") return;
    ctx.fillStyle = color;
    const full = ctx.measureText(text).width;
    if (full > room) text = `${text.slice(0, Math.max(0, Math.floor((text.length * (room - 8)) / full)))}…`;
    if (text.length > 1) ctx.fillText(text, x, y);
  }

  /**
   * The parts of an interval that no window covers.
   * @returns {View[]}
   */
  uncovered() {
    const gaps = [];
    let at = this.view.from;
    for (const { from, to } of this.windows) {
      if (from > at) gaps.push({ from: at, to: from });
      at = Math.max(at, to);
    }
    if (at < this.view.to) gaps.push({ from: at, to: this.view.to });
    return gaps;
  }

  /**
   * What share of each column the states had, by the buckets.
   * @param {number} row @param {number} y @param {number} height @param {string[]} colors  By number of the state.
   * @param {number} [most]  Time that fills a column, as a multiple of its length.
   */
  buckets(row, y, height, colors, most = 1) {
    const { ctx, model, scale } = this;
    const { width } = model.head.level;
    for (const { from, to } of this.uncovered()) {
      for (let at = from; at < to; ) {
        // A bucket, or a whole pixel where buckets are narrower.
        const bucket = (Math.floor(at / width) + 1) * width;
        const pixel = this.view.from + (Math.floor((at - this.view.from) * scale + 1e-6) + 1) / scale;
        const next = Math.min(to, Math.max(bucket, pixel));
        const x = this.x(at), w = this.x(next) - x;
        let top = y + height;
        const series = model.level[row] ?? [];
        series.forEach((sums, state) => {
          const share = (model.upTo(sums, next) - model.upTo(sums, at)) / (next - at) / most;
          const h = Math.min(share * height, top - y);
          if (h < 0.05 || !colors[state]) return;
          ctx.fillStyle = colors[state];
          ctx.fillRect(x, (top -= h), w + 0.3, h);
        });
        at = next;
      }
    }
  }

  /**
   * Spans of a lane; those narrower than a pixel share it.
   * @param {Lane} lane @param {Window} window @param {number} y @param {number} height @param {Look} look
   */
  spans(lane, window, y, height, look) {
    const { ctx, theme } = this;
    const from = Math.max(this.view.from, window.from), to = Math.min(this.view.to, window.to);
    const [first, last] = touching(lane, from, to);
    let column = -1, filled = 0;
    for (let i = first; i < last; i++) {
      const x0 = this.x(Math.max(lane.start[i], from)), x1 = this.x(Math.min(lane.end[i], to));
      const w = x1 - x0;
      if (w <= 0) continue;
      ctx.fillStyle = look.color(i);
      if (w < 1) {
        const at = Math.floor(x0);
        if (at !== column) [column, filled] = [at, 0];
        const h = Math.min(Math.max(w, 0.08), 1 - filled) * height;
        ctx.fillRect(column, y + height - filled * height - h, 1, h);
        filled += h / height;
        continue;
      }
      ctx.fillRect(x0, y, w, height);
      if (w > 3) {
        if (look.hatch?.(i)) this.hatch(x0, y, w, height);
        ctx.fillStyle = theme.paper;
        ctx.fillRect(x1 - 0.5, y, 0.5, height);
        if (w > 20 && height > 8) this.text(look.text(i), x0 + 4, y + height / 2 + 0.5, w - 8, look.ink?.(i) ?? theme.dark);
      }
    }
  }

  /** Stripes, for who does not see the colour. @param {number} x @param {number} y @param {number} w @param {number} h */
  hatch(x, y, w, h) {
    const { ctx } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(x, y, w, h);
    ctx.clip();
    ctx.strokeStyle = "rgba(255,255,255,.28)";
    ctx.lineWidth = 2;
    ctx.beginPath();
    const first = Math.max(x, this.left), last = Math.min(x + w, this.width);
    for (let at = first - (first % 7) - h; at < last; at += 7) {
      ctx.moveTo(at, y + h);
      ctx.lineTo(at + h, y);
    }
    ctx.stroke();
    ctx.restore();
  }

  /** @param {Placed} row @param {number} y */
  row(row, y) {
    if (row.kind === "cpu") this.cpu(row, y);
    else if (row.kind === "thread") this.thread(row, y);
    else if (row.kind === "lock") this.lock(row, y);
  }

  /** @param {Placed} row @param {number} y */
  cpu({ index, bands }, y) {
    const { model, theme } = this;
    const [run, irq] = bands;
    this.buckets(index, y + run.y, run.height, [theme.accent, theme.other]);
    this.windows.forEach((window) => {
      const { run: lane, irq: interrupts } = window.cpus[index];
      this.spans(lane, window, y + run.y, run.height, {
        color: (i) => (lane.kind[i] === 0 ? theme.hue(lane.b[i]) : theme.other),
        text: (i) => model.head.strings[lane.a[i]],
        ink: (i) => (lane.kind[i] === 0 ? theme.dark : theme.ink),
      });
      this.spans(interrupts, window, y + irq.y, irq.height, { color: () => theme.irq, text: () => "" });
    });
  }

  /** @param {Placed} row @param {number} y */
  thread({ index, bands }, y) {
    const { model, theme } = this;
    const { states, strings, locks } = model.head;
    const preempted = states.indexOf("preempted");
    for (const { lane: name, y: top, height } of bands) {
      if (name === "state") this.buckets(model.firstThread + index, y + top, height, theme.states);
      for (const window of this.windows) {
        const lane = window.threads[index][name];
        if (name === "state") {
          this.spans(lane, window, y + top, height, {
            color: (i) => theme.states[lane.kind[i]],
            text: (i) => stateText(states[lane.kind[i]], strings[lane.a[i]], lane.b[i]),
            ink: (i) => theme.on(lane.kind[i]),
            hatch: (i) => lane.kind[i] === preempted,
          });
          this.gaps(window.threads[index].gaps, window, y + top + height - 3);
        } else {
          this.nested(lane, window, y + top, height / LANE, {
            color: (i) => theme.hue(lane.a[i] + (name === "holds" ? 7 : 3)),
            text: (i) => (name === "holds" && lane.a[i] < locks.length ? lockName(locks[lane.a[i]]) : strings[lane.a[i] - (name === "holds" ? locks.length : 0)] ?? ""),
          });
        }
      }
    }
  }

  /** Spans within each other, the outer above. @param {Lane} lane @param {Window} window @param {number} y @param {number} depth @param {Look} look */
  nested(lane, window, y, depth, look) {
    const { ctx, theme } = this;
    const [first, last] = touching(lane, this.view.from, this.view.to);
    // What covers the first of them may begin long before: places are found from the begin of the window.
    const places = this.places(lane, depth);
    for (let i = first; i < last; i++) {
      const from = Math.max(lane.start[i], window.from, this.view.from), to = Math.min(lane.end[i], window.to, this.view.to);
      const w = this.x(to) - this.x(from), place = places[i];
      if (w < 0 || place < 0) continue;
      ctx.fillStyle = look.color(i);
      ctx.fillRect(this.x(from), y + place * LANE, Math.max(w, 0.7), LANE - 1);
      if (w > 30) this.small(look.text(i), this.x(from) + 3, y + place * LANE + LANE / 2, w - 6, theme.dark);
    }
  }

  /** @param {Lane} lane @param {number} lanes @returns {number[]} */
  places(lane, lanes) {
    let places = PLACES.get(lane);
    if (!places) PLACES.set(lane, (places = stack(lane.start, lane.end, 0, lane.n, lanes)));
    return places;
  }

  /** @param {string} text @param {number} x @param {number} y @param {number} room @param {string} color */
  small(text, x, y, room, color) {
    this.ctx.font = "9px system-ui, sans-serif";
    this.text(text, x, y, room, color);
    this.ctx.font = FONT;
  }

  /** @param {Lane} lane @param {Window} window @param {number} y */
  gaps(lane, window, y) {
    this.spans(lane, window, y, 3, { color: () => this.theme.ink, text: () => "" });
  }

  /**
   * A lock: its holder in the colours of what that thread did, and below who waits.
   * @param {Placed} row @param {number} y
   */
  lock({ index, bands }, y) {
    const { ctx, model, theme } = this;
    const [held, queue] = bands;
    const { threads, strings, states } = model.head;
    this.buckets(model.firstLock + index, y + held.y, held.height, [theme.states[0], theme.states[1], theme.states[3]]);
    this.buckets(model.firstLock + index, y + queue.y, queue.height, ["", "", "", theme.wait], WAITERS);
    for (const window of this.windows) {
      const { holds, waits } = window.locks[index];
      const [first, last] = touching(holds, this.view.from, this.view.to);
      this.spans(holds, window, y + held.y, held.height, { color: () => theme.states[0], text: () => "" });
      for (let i = first; i < last; i++) {
        const from = Math.max(holds.start[i], window.from), to = Math.min(holds.end[i], window.to);
        if ((to - from) * this.scale < 3) continue;
        const { state } = window.threads[holds.b[i] - 1];
        const within = { ...window, from, to };
        this.spans(state, within, y + held.y, held.height, {
          color: (j) => theme.states[state.kind[j]],
          text: () => "",
          hatch: (j) => states[state.kind[j]] === "preempted",
        });
        const x0 = Math.max(this.x(from), this.left), x1 = Math.min(this.x(to), this.width);
        ctx.strokeStyle = theme.ink;
        ctx.lineWidth = 0.8;
        ctx.strokeRect(x0 + 0.4, y + held.y + 0.4, Math.max(x1 - x0 - 0.8, 0), held.height - 0.8);
        const place = strings[holds.a[i]];
        const [first, last] = touching(state, from, to);
        let most = -1, length = (to - from) / 3;
        for (let j = first; j < last; j++) {
          const ns = Math.min(state.end[j], to) - Math.max(state.start[j], from);
          if (ns > length && state.kind[j] !== 0) [most, length] = [j, ns];
        }
        const why = most < 0 ? "" : `: ${stateText(states[state.kind[most]], strings[state.a[most]], state.b[most])}`;
        const says = `${threads[holds.b[i] - 1].name}${place ? ` at ${file(place)}` : ""}${why}`;
        this.text(says, x0 + 4, y + held.y + held.height / 2 + 0.5, x1 - x0 - 8, most < 0 ? theme.dark : theme.on(state.kind[most]));
      }
      const places = this.places(waits, WAITERS);
      const pitch = queue.height / WAITERS;
      const [w0, w1] = touching(waits, this.view.from, this.view.to);
      let more = 0;
      for (let i = w0; i < w1; i++) {
        const from = Math.max(waits.start[i], window.from, this.view.from), to = Math.min(waits.end[i], window.to, this.view.to);
        if (places[i] < 0) more++;
        if (to < from || places[i] < 0) continue;
        const x = this.x(from), w = this.x(to) - x;
        ctx.fillStyle = theme.wait;
        ctx.fillRect(x, y + queue.y + places[i] * pitch, Math.max(w, 0.7), pitch - 1);
        if (w > 40 && pitch >= LANE) this.small(`${threadName(threads[waits.b[i] - 1])} waits`, x + 3, y + queue.y + (places[i] + 0.5) * pitch, w - 6, theme.dark);
      }
      if (more) this.small(`+${more}`, this.left + 2, y + queue.y + queue.height - 4, 60, theme.ink);
    }
  }

  /**
   * The events of a thread, each kind in its colour; a kind that is marked from top to bottom.
   * @param {number} thread @param {number} y @param {(kind: number) => boolean} shown
   */
  events(thread, y, shown) {
    const { ctx, model, theme } = this;
    for (const window of this.windows) {
      const { events } = window.threads[thread];
      const [first, last] = touching(events, this.view.from, this.view.to);
      // A dash must not take the place of a triangle in the same pixel.
      let dashed = -1, pointed = -1;
      for (let i = first; i < last; i++) {
        const x = this.x(events.start[i]), column = Math.floor(x), { quiet } = model.head.events[events.a[i]];
        if (!shown(events.a[i]) || column === (quiet ? dashed : pointed)) continue;
        ctx.fillStyle = theme.ink;
        if (quiet) {
          ctx.fillRect(x, y - 1, 0.7, 3);
          dashed = column;
          continue;
        }
        pointed = column;
        ctx.beginPath();
        ctx.moveTo(x - 3, y);
        ctx.lineTo(x + 3, y);
        ctx.lineTo(x, y + 5);
        ctx.fill();
      }
    }
  }

  /** Where records were lost. @param {number} y @param {number} height */
  losses(y, height) {
    const { ctx, theme, view } = this;
    for (const { from, to } of this.model.head.losses) {
      if (to < view.from || from > view.to) continue;
      const x = Math.max(this.x(from), this.left), w = Math.max(Math.min(this.x(to), this.width) - x, 2);
      ctx.globalAlpha = 0.25;
      ctx.fillStyle = theme.states[1];
      ctx.fillRect(x, y, w, height);
      this.hatch(x, y, w, height);
      ctx.globalAlpha = 1;
    }
  }

  /**
   * Who woke whom: from the waker at the waking to the woken; false, and no arrow, where there would be too many to see any.
   * @param {(thread: number) => number | undefined} middle  Where the row of a thread is, if it is in sight.
   */
  wakes(middle) {
    const { ctx, theme } = this;
    /** @type {[from: number, y0: number, y1: number][]} */
    const arrows = [];
    for (const window of this.windows) {
      for (let thread = 0; thread < window.threads.length; thread++) {
        const { wakes } = window.threads[thread];
        const to = middle(thread);
        if (to === undefined) continue;
        const [first, last] = touching(wakes, this.view.from, this.view.to);
        for (let i = first; i < last; i++) {
          const from = wakes.b[i] === 0 ? undefined : middle(wakes.b[i] - 1);
          if (from === undefined || wakes.start[i] < this.view.from) continue;
          if (arrows.push([this.x(wakes.start[i]), from, to]) > MAX_ARROWS) return false;
        }
      }
    }
    ctx.strokeStyle = ctx.fillStyle = theme.ink;
    ctx.lineWidth = 0.8;
    ctx.globalAlpha = 0.75;
    for (const [x, y0, y1] of arrows) {
      const down = Math.sign(y1 - y0), bow = Math.min(14, Math.abs(y1 - y0) / 4);
      ctx.beginPath();
      ctx.moveTo(x, y0);
      ctx.bezierCurveTo(x + bow, y0, x + bow, y1, x, y1);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(x, y1);
      ctx.lineTo(x + 5, y1 - 3.5 - down);
      ctx.lineTo(x + 5, y1 + 3.5 - down);
      ctx.fill();
    }
    ctx.globalAlpha = 1;
    return true;
  }

  /** The scale of time. @param {number} height */
  axis(height) {
    const { ctx, theme, view } = this;
    const { offset } = this.model.head;
    const { step, times } = ticks({ from: view.from + offset, to: view.to + offset }, (this.width - this.left) / 110);
    for (const t of times) {
      const x = Math.round(this.x(t - offset)) + 0.5;
      ctx.fillStyle = theme.line;
      ctx.fillRect(x, height - 6, 1, 6);
      const says = moment(t, step);
      // Half of a number at the edge would be another number.
      if (x + 4 + ctx.measureText(says).width > this.width) continue;
      ctx.fillStyle = theme.faint;
      ctx.fillText(says, x + 4, height - 9);
    }
  }
}

/** A place without its directories. @param {string} place */
export function file(place) {
  return place.slice(place.lastIndexOf("/") + 1);
}

/** Arrows that are drawn at once; more are no picture any more. */
export const MAX_ARROWS = 400;

/** @type {WeakMap<Lane, number[]>} */
const PLACES = new WeakMap();

/**
 * What a state is, in words.
 * @param {string} state @param {string} culprit @param {number} by
 */
export function stateText(state, culprit, by) {
  switch (state) {
    case "running": return by ? `running on CPU ${by - 1}` : "running";
    case "preempted": return culprit ? `preempted by ${culprit}` : "preempted";
    case "dispatch": return culprit ? `woken, waits for a CPU behind ${culprit}` : "woken, waits for a CPU";
    case "lock": return culprit ? `waits: ${culprit}` : "waits for a lock";
    case "blocked": return culprit ? `blocked: ${culprit}` : "blocked";
    case "unexplained": return "unexplained";
    default: return culprit ? `${state}: ${culprit}` : state;
  }
}
