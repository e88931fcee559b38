// @ts-check
// What is said beside the picture: of a click, of the ruler, of events. Text goes in as text, never as HTML.

import { lockName, threadName } from "./layout.js";
import { file, stateText } from "./paint.js";
import { touching } from "./model.js";
import { duration, exactly, moment } from "./view.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./layout.js").Placed} Placed */
/** @typedef {import("./types.js").Window} Window */

/**
 * What was clicked: a span of a row, or a place of it where none is.
 * @typedef {object} Pick
 * @property {"cpu" | "thread" | "lock"} kind
 * @property {number} index
 * @property {number} at
 * @property {string} what
 * @property {string} [who]
 * @property {number} from
 * @property {number} to
 * @property {string} mark  How sure; empty for what only the buckets tell.
 * @property {number} [thread]  Whose span it is.
 * @property {number} [lock]
 */

/**
 * An element with its content.
 * @param {string} tag @param {Record<string, unknown>} props @param {...(Node | string | undefined)} content
 * @returns {HTMLElement}
 */
export function h(tag, props, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name, /** @type {EventListener} */ (value));
    else if (name === "style") element.style.cssText = String(value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...content.filter((c) => c !== undefined));
  return element;
}

/** What each mark promises. */
const SURE = {
  exact: "exact: right within the error of the clock",
  disturbed: "disturbed: so it was, and the tracer itself has changed it",
  "lower bound": "lower bound: at least this; records are missing",
  censored: "censored: its begin or its end was not recorded",
};

/**
 * The span of a lane at a time, of those that begin last, or one within `slack` ns of it.
 * @param {import("./types.js").Lane} lane @param {number} t @param {number} slack @param {(i: number) => boolean} [fits]
 */
export function spanAt(lane, t, slack, fits = () => true) {
  const [first, last] = touching(lane, t - slack, t + slack);
  let best = -1, distance = Infinity;
  for (let i = first; i < last; i++) {
    const off = Math.max(lane.start[i] - t, t - lane.end[i], 0);
    if (off <= slack && off <= distance && fits(i)) [best, distance] = [i, off];
  }
  return best;
}

/**
 * What is at a place of the picture.
 * @param {Model} model @param {Placed} row @param {string | undefined} lane @param {number} t @param {number} slack  ns of a few pixels
 * @param {(name: string, lane: import("./types.js").Lane, i: number) => boolean} fits  The span lies where the click was.
 * @returns {Pick | undefined}
 */
export function pick(model, row, lane, t, slack, fits) {
  if (row.kind === "group") return undefined;
  const { head } = model, { kind, index } = row;
  const window = model.windowAt(Math.min(Math.max(t, 0), head.span - 1));
  const nowhere = { kind, index, at: t, from: t, to: t, mark: "", ...(kind === "thread" && { thread: index }), ...(kind === "lock" && { lock: index }) };
  if (!window) {
    const { width } = head.level;
    const from = Math.floor(t / width) * width;
    return { ...nowhere, what: "a bucket: the spans of this time are not in the page", from, to: Math.min(from + width, head.span) };
  }
  const lanes = kind === "cpu" ? window.cpus[index] : kind === "thread" ? window.threads[index] : window.locks[index];
  const name = lane ?? (kind === "cpu" ? "run" : kind === "thread" ? "state" : "holds");
  const spans = lanes[name];
  const i = spanAt(spans, t, name === "state" || name === "run" ? 0 : slack, (i) => fits(name, spans, i));
  if (i < 0) return { ...nowhere, what: kind === "cpu" ? "idle, or not recorded" : kind === "lock" ? "free" : "nothing was recorded" };
  return { ...nowhere, from: spans.start[i], to: spans.end[i], mark: head.marks[spans.mark[i]], ...words(model, kind, index, name, spans, i), ...(name === "events" && { what: `${head.events[spans.a[i]].name} ${window.says[spans.b[i]] ?? ""}`, thread: index }) };
}

/**
 * @param {Model} model @param {string} kind @param {number} index @param {string} name @param {import("./types.js").Lane} lane @param {number} i
 * @returns {{what: string, who?: string, thread?: number, lock?: number}}
 */
function words({ head }, kind, index, name, { kind: kinds, a, b }, i) {
  const text = head.strings[a[i]] ?? "";
  /** @param {number} row */
  const thread = (row) => (row > 0 ? threadName(head.threads[row - 1]) : undefined);
  /** @param {number} lock */
  const lock = (lock) => (lock < head.locks.length ? lockName(head.locks[lock]) : head.strings[lock - head.locks.length] ?? "");
  const shared = kinds[i] & 1 ? " for reading" : "";
  const place = head.strings[b[i]] ? ` at ${file(head.strings[b[i]])}` : "";
  if (kind === "cpu") {
    return name === "irq" ? { what: `interrupt ${text}` } : { what: `${text} runs`, who: thread(b[i]), ...(b[i] && { thread: b[i] - 1 }) };
  }
  if (kind === "lock") {
    const where = text ? ` at ${file(text)}` : "";
    const who = thread(b[i]);
    return { what: `${name === "holds" ? "held" : "waited for"}${shared} by ${who}${where}`, who, thread: b[i] - 1, lock: index };
  }
  const own = { thread: index, ...((name === "holds" || name === "waits") && a[i] < head.locks.length && { lock: a[i] }) };
  switch (name) {
    case "state": {
      const state = head.states[kinds[i]];
      return { ...own, what: stateText(state, text, b[i]), who: state === "running" ? undefined : thread(b[i]) };
    }
    case "holds": return { ...own, what: `holds ${lock(a[i])}${shared}${place}` };
    case "waits": return { ...own, what: `waits for ${lock(a[i])}${shared}${place}` };
    case "scopes": return { ...own, what: `in ${text}` };
    case "gaps": return { ...own, what: `gap: ${head.causes[kinds[i]]}${text ? ` by ${text}` : ""}` };
    default: return { ...own, what: text };
  }
}

/** @param {...[string, string | undefined]} facts */
function list(...facts) {
  const given = facts.filter(([, value]) => value !== undefined && value !== "");
  return h("dl", {}, ...given.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** How sure, in words. @param {string} mark */
export function sure(mark) {
  return mark === "" ? "by the buckets alone" : SURE[/** @type {keyof typeof SURE} */ (mark)] ?? mark;
}

/** @param {Pick} found @param {Model} model */
export function facts(found, model) {
  const { head } = model;
  const row = found.kind === "cpu" ? `CPU ${head.cpus[found.index]}` : found.kind === "thread" ? threadName(head.threads[found.index]) : `lock ${lockName(head.locks[found.index])}`;
  const long = found.to > found.from;
  return list(
    ["where", row],
    ["what", found.what],
    ["who", found.who],
    ["from", `${moment(found.from + head.offset, 1)} (${String(BigInt(head.begin) + BigInt(Math.round(found.from)))} ns of CLOCK_MONOTONIC)`],
    ["long", long ? `${duration(found.to - found.from)} = ${exactly(found.to - found.from)}` : undefined],
    ["how sure", sure(found.mark)],
  );
}

/**
 * Where the time of a thread went in an interval: a bar, and its parts to the nanosecond.
 * @param {Model} model @param {number} thread @param {number} from @param {number} to @param {string[]} colors
 */
export function decomposition(model, thread, from, to, colors) {
  const { head } = model;
  const { parts, blur, pending } = model.decompose(thread, from, to);
  const names = [...head.states, "not there"];
  const total = to - from;
  const shown = parts.map((ns, i) => ({ ns, i })).filter(({ ns }) => ns > 0);
  const bar = h("div", { class: "tl-parts" }, ...shown.map(({ ns, i }) =>
    h("i", { style: `width:${(100 * ns) / total}%;background:${colors[i] ?? "transparent"}`, title: `${names[i]} ${duration(ns)}` })));
  const rows = shown.sort((p, q) => q.ns - p.ns).map(({ ns, i }) =>
    h("tr", {}, h("td", {}, h("b", { class: "tl-dot", style: `background:${colors[i] ?? "transparent"}` }), NAMES[names[i]] ?? names[i]),
      h("td", { class: "n" }, exactly(ns)), h("td", { class: "n" }, `${((100 * ns) / total).toFixed(1)} %`)));
  const sum = h("tr", { class: "sum" }, h("td", {}, "sum"), h("td", { class: "n" }, exactly(total)), h("td", { class: "n" }, "100 %"));
  const note = pending ? "Unpacking …" : blur === 0
    ? "Exact: of each moment the span is known, or the whole bucket lies inside."
    : `Of ${duration(blur)} at its ends only the buckets of ${duration(head.level.width)} are known, taken as even; all else is exact.`;
  const culprits = model.culprits(thread, from, to).filter(({ name, state }) => name !== "" && head.states[state] !== "running").slice(0, 8);
  const why = culprits.map(({ state, name, ns, times }) =>
    h("tr", {}, h("td", {}, h("b", { class: "tl-dot", style: `background:${colors[state]}` }), `${NAMES[head.states[state]] ?? head.states[state]}: ${name}`),
      h("td", { class: "n" }, duration(ns)), h("td", { class: "n" }, `${times} ×`)));
  return h("div", {}, bar, h("table", {}, h("tbody", {}, ...rows, sum)), h("p", { class: "tl-sure" }, note),
    why.length > 0 ? h("table", { class: "tl-why" }, h("caption", {}, "By whom, where the spans are here"), h("tbody", {}, ...why)) : undefined);
}

/** @type {Record<string, string>} */
export const NAMES = {
  dispatch: "woken and waiting",
  lock: "waiting for a lock",
  hardirq: "hardware interrupt",
  softirq: "softirq",
  vector: "interrupt vector",
  "not there": "not there, or not seen",
};

/**
 * Who held a lock in an interval and who waited, as far as the spans are there.
 * @param {Model} model @param {number} lock @param {number} from @param {number} to
 */
export function lockUse(model, lock, from, to) {
  /** @param {"holds" | "waits"} what */
  const sums = (what) => {
    /** @type {Map<number, {ns: number, times: number}>} */
    const found = new Map();
    for (const window of model.windowsIn(from, to)) {
      const lane = window.locks[lock][what];
      const [first, last] = touching(lane, from, to);
      for (let i = first; i < last; i++) {
        const ns = Math.min(lane.end[i], to) - Math.max(lane.start[i], from);
        if (ns <= 0) continue;
        const sum = found.get(lane.b[i]) ?? { ns: 0, times: 0 };
        found.set(lane.b[i], { ns: sum.ns + ns, times: sum.times + 1 });
      }
    }
    return [...found].sort(([, p], [, q]) => q.ns - p.ns).slice(0, 8);
  };
  /** @param {string} title @param {[number, {ns: number, times: number}][]} found */
  const table = (title, found) => found.length === 0 ? undefined : h("table", { class: "tl-why" }, h("caption", {}, title),
    h("tbody", {}, ...found.map(([thread, { ns, times }]) =>
      h("tr", {}, h("td", {}, threadName(model.head.threads[thread - 1])), h("td", { class: "n" }, duration(ns)), h("td", { class: "n" }, `${times} ×`)))));
  return h("div", {}, table(`Who held ${lockName(model.head.locks[lock])}`, sums("holds")), table("Who waited for it", sums("waits")));
}
