// @ts-check
// Which rows there are, where each stands, and what is at a point.

/** @typedef {import("./types.js").Head} Head */

/**
 * A band of a row: one lane, or several of spans within each other.
 * @typedef {{lane: string, y: number, height: number}} Band
 */

/**
 * @typedef {object} Placed
 * @property {"cpu" | "thread" | "lock" | "group"} kind
 * @property {number} index  Of the CPU, thread or lock in the head.
 * @property {string} label
 * @property {string} hint
 * @property {number} y  Of its top, in pixels from the top of all rows.
 * @property {number} height
 * @property {Band[]} bands  Their `y` is from the top of the row.
 */

export const BAR = 17;
export const LANE = 10;
/** Waiters of a lock that have a lane of their own. */
export const WAITERS = 4;

/** @param {Head["threads"][number]} thread */
export function threadName({ tid, name }) {
  return tid === 0 ? name : `${name} ${tid}`;
}

/** @param {Head["locks"][number]} lock */
export function lockName({ name, address }) {
  return name === "" || name === address ? `0x${address.replace(/^0x/, "")}` : name;
}

/**
 * @param {Head} head @param {"cpu" | "thread" | "lock"} kind @param {number} index
 * @param {boolean} [large]  With room for the names of waiters.
 */
function row(head, kind, index, large = false) {
  /** @type {Band[]} */
  const bands = [];
  let y = 2;
  /** @param {string} lane @param {number} height */
  const band = (lane, height) => {
    bands.push({ lane, y, height });
    y += height + 1;
  };
  let label = "", hint = "";
  if (kind === "cpu") {
    label = `CPU ${head.cpus[index]}`;
    band("run", BAR);
    band("irq", 4);
  } else if (kind === "thread") {
    const { pid, tid, depth, scopes } = head.threads[index];
    label = threadName(head.threads[index]);
    hint = tid === 0 ? "" : `thread ${tid} of process ${pid}`;
    band("state", BAR);
    if (depth) band("holds", depth * LANE);
    if (scopes) band("scopes", scopes * LANE);
  } else {
    const lock = head.locks[index];
    const alike = head.locks.some((other) => other !== lock && lockName(other) === lockName(lock));
    label = lockName(lock) + (alike ? ` …${lock.address.slice(-4)}` : "");
    hint = `lock 0x${lock.address} of process ${lock.pid}`;
    band("holds", BAR);
    band("waits", WAITERS * (large ? LANE : 4));
  }
  return { kind, index, label, hint, y: 0, height: y + 2, bands };
}

const GROUPS = /** @type {const} */ ([["cpu", "CPUs", "cpus"], ["lock", "Locks", "locks"], ["thread", "Threads", "threads"]]);

/**
 * All rows, under the headings of their groups; those in `focus` come before all others, under their own.
 * @param {Head} head
 * @param {{kind: string, index: number}[]} focus
 * @param {Set<string>} folded  Labels of groups of which the heading alone is shown.
 * @returns {{rows: Placed[], height: number}}
 */
export function layout(head, focus, folded) {
  /** @type {Placed[]} */
  const rows = [];
  let y = 0;
  /** @param {Placed} placed */
  const place = (placed) => {
    rows.push({ ...placed, y });
    y += placed.height;
  };
  /** @param {string} label @param {Placed[]} members */
  const group = (label, members) => {
    if (members.length === 0) return;
    const open = !folded.has(label);
    const hint = open ? "fold" : "unfold";
    place({ kind: "group", index: -1, label: `${open ? "▾" : "▸"} ${label}`, hint, y, height: 20, bands: [] });
    if (open) members.forEach(place);
  };
  /** @param {string} kind @param {number} index */
  const focused = (kind, index) => focus.some((f) => f.kind === kind && f.index === index);
  group("In focus", focus.map(({ kind, index }) => row(head, /** @type {"cpu"} */ (kind), index, true)));
  for (const [kind, label, of] of GROUPS) {
    const members = head[of].map((_, index) => index).filter((index) => !focused(kind, index));
    group(label, members.map((index) => row(head, kind, index)));
  }
  return { rows, height: y };
}

/**
 * The row at a height, and the band of it.
 * @param {Placed[]} rows @param {number} y
 * @returns {{row: Placed, band?: Band} | undefined}
 */
export function rowAt(rows, y) {
  const row = rows.find((r) => r.y <= y && y < r.y + r.height);
  if (!row) return undefined;
  return { row, band: row.bands.find((b) => row.y + b.y <= y && y < row.y + b.y + b.height + 1) };
}

/**
 * A lane for each span so that none covers another, the lowest that is free; -1 where all are taken.
 * @param {ArrayLike<number>} start @param {ArrayLike<number>} end @param {number} first @param {number} last @param {number} lanes
 */
export function stack(start, end, first, last, lanes) {
  const free = new Array(lanes).fill(-Infinity);
  const places = [];
  for (let i = first; i < last; i++) {
    const lane = free.findIndex((until) => until <= start[i]);
    if (lane >= 0) free[lane] = end[i];
    places.push(lane);
  }
  return places;
}
