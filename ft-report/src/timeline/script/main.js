// @ts-check
// The timeline of the page: what is in view, what is chosen, and how one gets there.

import { controls, listen } from "./input.js";
import { layout } from "./layout.js";
import { Model } from "./model.js";
import { pick } from "./panel.js";
import { kinds, neighbours, said } from "./said.js";
import { LEFT, paint } from "./scene.js";
import { around, clamp, place, zoom } from "./view.js";

/** @typedef {import("./types.js").Head} Head */
/** @typedef {import("./types.js").View} View */
/** @typedef {import("./panel.js").Pick} Pick */
/** @typedef {import("./paint.js").Theme} Theme */

export class Timeline {
  /** @param {HTMLElement} section  With the data and the empty places that `page.rs` writes. */
  constructor(section) {
    this.section = section;
    /** @param {string} name @returns {HTMLElement} */
    this.part = (name) => /** @type {HTMLElement} */ (section.querySelector(`.tl-${name}`));
    /** @type {Head} */
    const head = JSON.parse(this.part("head").textContent ?? "");
    const chunks = section.querySelectorAll(".tl-chunk");
    this.model = new Model(head, (i) => chunks[i].textContent ?? "", () => this.draw());
    this.head = head;
    /** @type {View} */
    this.view = clamp({ from: 0, to: head.span }, head.span);
    /** @type {{kind: string, index: number}[]} */
    this.focus = [];
    /** @type {Set<string>} */
    this.folded = new Set();
    /** @type {Set<number>} */
    this.hidden = new Set();
    /** @type {Set<number>} */
    this.markedKinds = new Set();
    /** @type {Pick | undefined} */
    this.picked = undefined;
    /** @type {View | undefined} */
    this.ruler = undefined;
    /** @type {import("./layout.js").Placed[]} */
    this.rows = [];
    /** Of the picture, px. */
    this.width = 1000;
    /** @type {number[][] | undefined} */
    this.totals = undefined;
    /** Something in view is not unpacked yet. */
    this.stale = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.settled = undefined;
    this.incident = -1;
    this.allThreads = false;
    this.asked = false;
    this.theme = this.readTheme();
    this.stage = this.part("stage");
    this.canvas = /** @type {HTMLCanvasElement} */ (this.part("rows"));
  }

  async begin() {
    await this.model.begin();
    this.part("all").hidden = false;
    this.place();
    controls(this);
    listen(this);
    this.follow();
    said(this);
    paint(this);
    this.section.dataset.ready = "true";
  }

  /** @returns {Theme} */
  readTheme() {
    const style = getComputedStyle(this.section);
    /** @param {string} name */
    const color = (name) => style.getPropertyValue(`--tl-${name}`).trim() || "#888";
    const light = color("scheme") !== "dark";
    return {
      states: this.head.states.map((state) => style.getPropertyValue(`--part-${state}`).trim() || color(state)),
      ink: color("ink"), faint: color("faint"), line: color("line"), paper: color("paper"), group: color("group"),
      accent: color("accent"), other: color("other"), irq: style.getPropertyValue("--part-softirq").trim(), wait: color("lock"), dark: color("dark"),
      on: (state) => (this.head.states[state] === "blocked" ? color("ink") : color("dark")),
      hue: (n) => `hsl(${(n * 137.5) % 360} ${light ? "58% 66%" : "42% 58%"})`,
    };
  }

  /** Places the rows anew. */
  place() {
    const { rows, height } = layout(this.head, this.focus, this.folded);
    this.rows = rows;
    this.part("space").style.height = `${height}px`;
    this.stage.style.height = `min(${height + 2}px, 68vh)`;
  }

  /** @param {View} view */
  show(view) {
    this.view = clamp(view, this.head.span);
    this.draw();
    clearTimeout(this.settled);
    this.settled = setTimeout(() => kinds(this), 150);
  }

  draw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      // What was said while something was missing is said again when it has come.
      const was = this.stale;
      paint(this);
      if (was || this.stale) said(this);
    });
  }

  /** The thread whose time the ruler takes apart. */
  get measured() {
    if (this.picked?.thread !== undefined) return this.picked.thread;
    return this.focus.find((f) => f.kind === "thread")?.index ?? (this.head.threads.length > 0 ? 0 : undefined);
  }

  /** @param {Set<number>} set @param {number} kind */
  toggle(set, kind) {
    if (!set.delete(kind)) set.add(kind);
    this.draw();
    neighbours(this);
    kinds(this);
  }

  /** @param {number} kind @param {boolean} back */
  async nextEvent(kind, back) {
    const from = this.picked?.at ?? (back ? this.view.to : this.view.from);
    const found = await this.model.next(kind, from, back);
    if (found) this.goTo(found.t, found.thread);
    else this.part("status").textContent = `no ${back ? "earlier" : "later"} ${this.head.events[kind].name} in the spans of the page`;
  }

  /** @param {number} t @param {number} thread */
  goTo(t, thread) {
    const half = (this.view.to - this.view.from) / 2;
    if (t < this.view.from || t > this.view.to) this.show({ from: t - half, to: t + half });
    this.choose({ kind: "thread", index: thread }, t);
  }

  /** @param {{kind: string, index: number}} of @param {number} t */
  choose(of, t) {
    const row = this.rows.find((r) => r.kind === of.kind && r.index === of.index);
    if (!row) return;
    this.picked = pick(this.model, row, undefined, t, 0, () => true);
    if (this.picked) this.picked.at = t;
    this.reveal(of);
    said(this);
    this.draw();
  }

  /** Scrolls a row into sight. @param {{kind: string, index: number}} of */
  reveal(of) {
    const row = this.rows.find((r) => r.kind === of.kind && r.index === of.index);
    if (!row) return;
    const { scrollTop, clientHeight } = this.stage;
    if (row.y < scrollTop || row.y + row.height > scrollTop + clientHeight) this.stage.scrollTop = row.y - 30;
  }

  /** Puts the rows that have to do with an interval above all others. @param {Pick} found */
  bringTogether(found) {
    this.focus = this.involved(found.from, found.to, found.thread, found.lock);
    this.place();
    this.stage.scrollTop = 0;
    this.draw();
  }

  /**
   * The lock, the thread, who took its CPU, and who waits for the lock meanwhile.
   * @param {number} from @param {number} to @param {number | undefined} thread @param {number | undefined} lock
   */
  involved(from, to, thread, lock) {
    /** @type {{kind: string, index: number}[]} */
    const focus = [];
    /** @param {string} kind @param {number} index */
    const add = (kind, index) => {
      if (index >= 0 && focus.length < 10 && !focus.some((f) => f.kind === kind && f.index === index)) focus.push({ kind, index });
    };
    if (lock !== undefined) add("lock", lock);
    if (thread !== undefined) add("thread", thread);
    for (const { threads, locks } of this.model.windowsIn(from, to)) {
      if (thread !== undefined) {
        const { state } = threads[thread];
        for (let i = 0; i < state.n; i++) {
          if (state.end[i] <= from || state.start[i] >= to) continue;
          if (this.head.states[state.kind[i]] === "running") add("cpu", this.head.cpus.indexOf(state.b[i] - 1));
          else if (state.end[i] - state.start[i] > (to - from) / 50) add("thread", state.b[i] - 1);
        }
      }
      if (lock === undefined) continue;
      const { holds, waits } = locks[lock];
      for (const lane of [waits, holds]) {
        for (let i = 0; i < lane.n; i++) if (lane.end[i] > from && lane.start[i] < to) add("thread", lane.b[i] - 1);
      }
    }
    return focus;
  }

  /** Shows an incident. @param {number} i */
  visit(i) {
    const incident = this.head.incidents[i];
    if (!incident) return;
    this.incident = i;
    /** @type {HTMLSelectElement} */ (this.part("incidents")).value = String(i);
    this.goToPlace(incident);
  }

  /** @param {{from: number, to: number, tid?: number, lock?: string}} place */
  async goToPlace({ from, to, tid, lock }) {
    const { head, model } = this;
    this.view = around(from, to, head.span);
    const windows = head.windows.map((w, i) => ({ ...w, i })).filter((w) => w.from < this.view.to && w.to > this.view.from);
    await Promise.all(windows.map((w) => model.whole(w.i)));
    const thread = head.threads.findIndex((t) => t.tid === tid && tid !== 0);
    const address = lock?.replace(/^0x/, "").replace(/^0+(?=.)/, "");
    const index = head.locks.findIndex((l) => l.address === address && (thread < 0 || l.pid === head.threads[thread].pid));
    const of = { thread: thread < 0 ? undefined : thread, lock: index < 0 ? undefined : index };
    this.focus = this.involved(from, to, of.thread, of.lock);
    this.ruler = to > from ? { from, to } : undefined;
    this.place();
    this.stage.scrollTop = 0;
    this.picked = undefined;
    const kind = of.lock !== undefined ? "lock" : of.thread !== undefined ? "thread" : undefined;
    const row = this.rows.find((r) => r.kind === kind && r.index === (of.lock ?? of.thread));
    if (row) this.picked = this.meant(row, from, to, of.thread);
    said(this);
    this.draw();
  }

  /**
   * What a link means: the hold or the wait of the thread that is as long, or what the thread did most of the time.
   * @param {import("./layout.js").Placed} row @param {number} from @param {number} to @param {number | undefined} thread
   * @returns {Pick | undefined}
   */
  meant(row, from, to, thread) {
    if (row.kind === "lock") {
      for (const lane of ["waits", "holds"]) {
        const found = pick(this.model, row, lane, from, 0, (_, spans, i) =>
          spans.start[i] === from && spans.end[i] === to && (thread === undefined || spans.b[i] === thread + 1));
        if (found?.mark) return found;
      }
    }
    return pick(this.model, row, undefined, (from + to) / 2, to - from, () => true);
  }

  /** Shows what the address of the page names. */
  follow() {
    const found = place(location.hash);
    if (!found) return;
    const { offset } = this.head;
    this.goToPlace({ ...found, from: found.from - offset, to: found.to - offset });
    this.section.scrollIntoView({ block: "start" });
  }

  /** @param {number} factor @param {number} [at] */
  zoom(factor, at = (this.view.from + this.view.to) / 2) {
    this.show(zoom(this.view, factor, at, this.head.span));
  }

  /** @param {number} x  Of the mouse, in the canvas. */
  time(x) {
    const { from, to } = this.view;
    const t = from + ((x - LEFT) / (this.width - LEFT)) * (to - from);
    return Math.min(Math.max(t, 0), this.head.span);
  }

  /** @param {"thread" | "lock"} kind @param {number} index */
  toRow(kind, index) {
    this.folded.clear();
    this.place();
    this.choose({ kind, index }, (this.view.from + this.view.to) / 2);
  }

  /** @param {number} from @param {number} to */
  measure(from, to) {
    this.ruler = { from: Math.round(Math.min(from, to)), to: Math.round(Math.max(from, to)) };
    said(this);
    this.draw();
  }
}
