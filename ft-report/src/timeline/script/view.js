// @ts-check
// What is in view: times, widths, and how they are written. No page, no data.

/** @typedef {import("./types.js").View} View */

/** The shortest time that fills the picture, ns. */
export const CLOSEST = 100;

/**
 * The same length of time, moved into the trace, or the trace where that is shorter.
 * @param {View} view @param {number} span @returns {View}
 */
export function clamp(view, span) {
  const length = Math.min(Math.max(view.to - view.from, CLOSEST), Math.max(span, CLOSEST));
  const from = Math.min(Math.max(view.from, 0), Math.max(span - length, 0));
  return { from, to: from + length };
}

/**
 * `factor` times as much time, with `at` where it was.
 * @param {View} view @param {number} factor @param {number} at @param {number} span @returns {View}
 */
export function zoom(view, factor, at, span) {
  const length = Math.max((view.to - view.from) * factor, CLOSEST);
  const share = (at - view.from) / (view.to - view.from);
  const from = at - share * length;
  return clamp({ from, to: from + length }, span);
}

/**
 * Moved by a share of its own length.
 * @param {View} view @param {number} share @param {number} span @returns {View}
 */
export function pan(view, share, span) {
  const by = (view.to - view.from) * share;
  return clamp({ from: view.from + by, to: view.to + by }, span);
}

/**
 * An interval with some of what is beside it.
 * @param {number} from @param {number} to @param {number} span @returns {View}
 */
export function around(from, to, span) {
  const margin = Math.max((to - from) * 0.3, CLOSEST / 2);
  return clamp({ from: from - margin, to: to + margin }, span);
}

const UNITS = /** @type {const} */ ([[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);

/**
 * A length of time with three digits, as the tables have it; whole ns below 1 µs.
 * @param {number} ns
 */
export function duration(ns) {
  const [scale, unit] = UNITS.find(([scale]) => Math.abs(ns) >= scale) ?? UNITS[3];
  const value = ns / scale;
  const digits = scale === 1 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value) + 1e-12)));
  return `${value.toFixed(digits)} ${unit}`;
}

/**
 * How many, as the tables write it.
 * @param {number} n
 */
export function grouped(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * A length of time to the nanosecond, in groups of three digits.
 * @param {number} ns
 */
export function exactly(ns) {
  return `${String(Math.round(ns)).replace(/\B(?=(\d{3})+$)/g, " ")} ns`;
}

/**
 * A time with as many digits as tell it from one `step` later.
 * @param {number} ns @param {number} step
 */
export function moment(ns, step) {
  const [scale, unit] = UNITS.find(([scale]) => Math.abs(ns) >= scale) ?? UNITS[3];
  const digits = Math.min(9, Math.max(0, Math.ceil(Math.log10(scale / Math.max(step, 1)) - 1e-9)));
  return `${(ns / scale).toFixed(digits)} ${unit}`;
}

/**
 * Times at round distances, about `count` of them.
 * @param {View} view @param {number} count @returns {{step: number, times: number[]}}
 */
export function ticks(view, count) {
  const least = (view.to - view.from) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, power * ([1, 2, 5].find((f) => f * power >= least) ?? 10));
  const times = [];
  for (let i = Math.ceil(view.from / step); i * step <= view.to; i++) times.push(i * step);
  return { step, times };
}

/**
 * The place that a link means: `#at=FROM-TO&tid=TID&lock=HEX`, the last two optional. Times before the recording began are
 * negative.
 * @param {string} hash
 * @returns {{from: number, to: number, tid?: number, lock?: string} | undefined}
 */
export function place(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const at = /^(-?\d{1,15})-(-?\d{1,15})$/.exec(fields.get("at") ?? "");
  if (!at || Number(at[2]) < Number(at[1])) return undefined;
  const tid = fields.get("tid") ?? "", lock = (fields.get("lock") ?? "").replace(/^0x/i, "").toLowerCase();
  return {
    from: Number(at[1]),
    to: Number(at[2]),
    ...(/^-?\d{1,10}$/.test(tid) && { tid: Number(tid) }),
    ...(/^[0-9a-f]{1,16}$/.test(lock) && { lock }),
  };
}

/**
 * The link to a place.
 * @param {{from: number, to: number, tid?: number, lock?: string}} place
 */
export function link({ from, to, tid, lock }) {
  const more = (tid === undefined ? "" : `&tid=${tid}`) + (lock === undefined ? "" : `&lock=${lock}`);
  return `#at=${Math.round(from)}-${Math.round(to)}${more}`;
}
