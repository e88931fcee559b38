// @ts-check
// What was so when: sums over intervals, exact where they can be, and what is near a time.

import { readLevel, readWindow, unpack } from "./codec.js";

/** @typedef {import("./types.js").Head} Head */
/** @typedef {import("./types.js").Lane} Lane */
/** @typedef {import("./types.js").Window} Window */

/**
 * Where the time of an interval went: `parts` by number of the state, what is left of it last. They sum to the interval.
 * Of `blur` ns it is known only from buckets that the interval cuts.
 * @typedef {{parts: number[], blur: number, pending: boolean}} Decomposition
 */

/**
 * The spans of a lane that touch an interval lie in `[first, last)`; some between them may not.
 * @param {Lane} lane @param {number} from @param {number} to @returns {[first: number, last: number]}
 */
export function touching({ n, start, reach }, from, to) {
  return [search(n, (i) => reach[i] >= from), search(n, (i) => start[i] > to)];
}

/**
 * The first of `n` numbers for which something holds that holds for all further ones.
 * @param {number} n @param {(i: number) => boolean} holds
 */
export function search(n, holds) {
  let low = 0;
  for (let high = n; low < high; ) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Whole numbers that sum to `total`, which `parts` do but for fractions.
 * @param {number[]} parts @param {number} total
 */
export function whole(parts, total) {
  const down = parts.map(Math.floor);
  const missing = Math.round(total) - down.reduce((sum, part) => sum + part, 0);
  const order = parts.map((part, i) => [part - down[i], i]).sort(([p], [q]) => q - p);
  order.slice(0, Math.max(missing, 0)).forEach(([, i]) => down[i]++);
  return down;
}

export class Model {
  /**
   * @param {Head} head
   * @param {(chunk: number) => string} text  The packed data: 0 the buckets, then the windows.
   * @param {() => void} changed  More of it is unpacked.
   */
  constructor(head, text, changed) {
    this.head = head;
    /** @type {(Float64Array | undefined)[][]} */
    this.level = [];
    /** @type {(Window | undefined)[]} */
    this.windows = head.windows.map(() => undefined);
    /** @type {Set<number>} */
    this.asked = new Set();
    this.text = text;
    this.changed = changed;
  }

  /** Unpacks what the first picture needs. */
  async begin() {
    this.level = readLevel(await unpack(this.text(0)), this.head);
  }

  /**
   * The windows that touch an interval and are there; those that are not come later, and `changed` tells.
   * @param {number} from @param {number} to
   */
  windowsIn(from, to) {
    const { windows } = this.head;
    const found = [];
    for (let i = search(windows.length, (i) => windows[i].to > from); i < windows.length && windows[i].from < to; i++) {
      const window = this.windows[i];
      if (window) found.push(window);
      else this.load(i);
    }
    return found;
  }

  /** @param {number} i */
  async load(i) {
    if (this.asked.has(i)) return;
    this.asked.add(i);
    this.windows[i] = readWindow(await unpack(this.text(i + 1)), this.head, this.head.windows[i]);
    this.changed();
  }

  /**
   * The window that holds a time.
   * @param {number} t
   */
  windowAt(t) {
    return this.windowsIn(t, t + 1).find((window) => window.from <= t && t < window.to);
  }

  /** Where the rows of threads begin in `level`, and those of locks. */
  get firstThread() {
    return this.head.cpus.length;
  }

  get firstLock() {
    return this.head.cpus.length + this.head.threads.length;
  }

  /** How many events of a kind there were up to the begin of each bucket. @param {number} kind */
  countsOf(kind) {
    return this.level[this.firstLock + this.head.locks.length + kind]?.[0];
  }

  /**
   * How long a row was in a state up to a time; within a bucket as if it were evenly so.
   * @param {Float64Array | undefined} sums @param {number} t
   */
  upTo(sums, t) {
    if (!sums) return 0;
    const { width, count } = this.head.level;
    const i = Math.min(Math.floor(t / width), count - 1);
    const length = Math.min(width, this.head.span - i * width);
    const share = length > 0 ? Math.min((t - i * width) / length, 1) : 1;
    return sums[i] + share * (sums[i + 1] - sums[i]);
  }

  /**
   * How long a row was in each state in an interval, by the buckets.
   * @param {number} row @param {number} from @param {number} to @returns {number[]}
   */
  shares(row, from, to) {
    return Array.from(this.level[row] ?? [], (sums) => this.upTo(sums, to) - this.upTo(sums, from));
  }

  /**
   * Where the time of a thread went. Whole buckets are exact; of those that an end of the interval cuts, the spans tell,
   * where they are there.
   * @param {number} thread @param {number} from @param {number} to @returns {Decomposition}
   */
  decompose(thread, from, to) {
    const { width, count } = this.head.level;
    const parts = this.head.states.map(() => 0);
    const found = { parts, blur: 0, pending: false };
    const first = Math.ceil(from / width), last = to >= this.head.span ? count : Math.floor(to / width);
    const end = Math.min(last * width, this.head.span);
    if (first < last) {
      this.shares(this.firstThread + thread, first * width, end).forEach((ns, s) => (parts[s] += ns ?? 0));
      this.piece(thread, from, first * width, found);
      this.piece(thread, end, to, found);
    } else {
      this.piece(thread, from, to, found);
    }
    const length = to - from;
    parts.push(Math.max(0, length - parts.reduce((sum, part) => sum + part, 0)));
    found.parts = whole(parts, length);
    return found;
  }

  /** @param {number} thread @param {number} from @param {number} to @param {Decomposition} found */
  piece(thread, from, to, found) {
    let at = from;
    /** @param {number} until */
    const guess = (until) => {
      if (until <= at) return;
      this.shares(this.firstThread + thread, at, until).forEach((ns, s) => (found.parts[s] += ns ?? 0));
      found.blur += until - at;
    };
    if (from >= to) return;
    for (const window of this.windowsIn(from, to)) {
      guess(Math.max(window.from, from));
      const end = Math.min(window.to, to);
      const { state } = window.threads[thread];
      const [first, last] = touching(state, Math.max(window.from, from), end);
      for (let i = first; i < last; i++) {
        const ns = Math.min(state.end[i], end) - Math.max(state.start[i], from);
        if (ns > 0) found.parts[state.kind[i]] += ns;
      }
      at = end;
    }
    guess(to);
    const { windows } = this.head;
    found.pending ||= windows.some((w, i) => w.from < to && w.to > from && !this.windows[i]);
  }

  /**
   * Who or what took the time of a thread in an interval, as far as the spans are there: the most first.
   * @param {number} thread @param {number} from @param {number} to
   * @returns {{state: number, name: string, ns: number, times: number}[]}
   */
  culprits(thread, from, to) {
    /** @type {Map<string, {state: number, name: string, ns: number, times: number}>} */
    const found = new Map();
    for (const window of this.windowsIn(from, to)) {
      const { state } = window.threads[thread];
      const [first, last] = touching(state, from, to);
      for (let i = first; i < last; i++) {
        const ns = Math.min(state.end[i], to) - Math.max(state.start[i], from);
        if (ns <= 0) continue;
        const key = `${state.kind[i]} ${state.a[i]}`;
        const sum = found.get(key) ?? { state: state.kind[i], name: this.head.strings[state.a[i]], ns: 0, times: 0 };
        sum.ns += ns;
        sum.times++;
        found.set(key, sum);
      }
    }
    return [...found.values()].sort((p, q) => q.ns - p.ns);
  }

  /**
   * How often each kind of event is in an interval, both ends of it included. Whole buckets are exact, and so is the rest where its
   * spans are there; where only a bucket is known that an end of the interval cuts, its events are taken as even.
   * @param {number} from @param {number} to
   * @returns {{counts: number[], about: boolean[]}}  Whole numbers, and of which kinds they are not exact.
   */
  count(from, to) {
    const { head } = this, { width, count } = head.level;
    const found = { counts: head.events.map(() => 0), about: head.events.map(() => false) };
    const first = Math.ceil(from / width), last = to >= head.span ? count : Math.floor(to / width);
    if (first < last) {
      head.events.forEach((_, kind) => {
        const sums = this.countsOf(kind);
        if (sums) found.counts[kind] = sums[last] - sums[first];
      });
      this.countPiece(from, first * width, false, found);
      if (to < head.span) this.countPiece(last * width, to, true, found);
    } else {
      this.countPiece(from, to, true, found);
    }
    found.counts = found.counts.map(Math.round);
    return found;
  }

  /**
   * @param {number} from @param {number} to @param {boolean} closed  Its end belongs to it.
   * @param {{counts: number[], about: boolean[]}} found
   */
  countPiece(from, to, closed, { counts, about }) {
    let at = from;
    /** @param {number} until */
    const guess = (until) => {
      if (until <= at) return;
      counts.forEach((_, kind) => {
        const sums = this.countsOf(kind), n = this.upTo(sums, until) - this.upTo(sums, at);
        if (n > 0) [counts[kind], about[kind]] = [counts[kind] + n, true];
      });
    };
    for (const window of this.windowsIn(from, to)) {
      guess(window.from);
      at = Math.max(window.from, at);
      const end = Math.min(window.to, to), isIn = (/** @type {number} */ t) => t < end || (closed && t === to);
      for (const { events } of window.threads) {
        for (let i = search(events.n, (i) => events.start[i] >= at); i < events.n && isIn(events.start[i]); i++) counts[events.a[i]]++;
      }
      at = end;
    }
    guess(to);
  }

  /**
   * The events nearest to a time, of one thread or of all, `count` on either side, in the order of time.
   * @param {number} t @param {number | undefined} thread @param {number} count @param {(kind: number) => boolean} shown
   * @returns {{t: number, thread: number, kind: number, says: string}[]}
   */
  near(t, thread, count, shown) {
    const window = this.windowAt(t);
    if (!window) return [];
    /** @type {{t: number, thread: number, kind: number, says: string}[]} */
    const before = [];
    /** @type {typeof before} */
    const after = [];
    window.threads.forEach(({ events }, of) => {
      if (thread !== undefined && of !== thread) return;
      const middle = search(events.n, (i) => events.start[i] > t);
      /** @param {number} i */
      const item = (i) => ({ t: events.start[i], thread: of, kind: events.a[i], says: window.says[events.b[i]] ?? "" });
      for (let i = middle - 1, n = 0; i >= 0 && n < count; i--) if (shown(events.a[i])) n = before.push(item(i)) && n + 1;
      for (let i = middle, n = 0; i < events.n && n < count; i++) if (shown(events.a[i])) n = after.push(item(i)) && n + 1;
    });
    before.sort((p, q) => q.t - p.t);
    after.sort((p, q) => p.t - q.t);
    return [...before.slice(0, count).reverse(), ...after.slice(0, count)];
  }

  /**
   * The next event of a kind after a time, or the one before it, as far as the spans are there.
   * @param {number} kind @param {number} t @param {boolean} back
   * @returns {Promise<{t: number, thread: number} | undefined>}
   */
  async next(kind, t, back) {
    const { windows } = this.head;
    const order = windows.map((_, i) => i).filter((i) => (back ? windows[i].from < t : windows[i].to > t));
    if (back) order.reverse();
    for (const i of order) {
      await this.whole(i);
      /** @type {{t: number, thread: number} | undefined} */
      let best;
      this.windows[i]?.threads.forEach(({ events }, thread) => {
        for (let j = 0; j < events.n; j++) {
          const at = events.start[j];
          if (events.a[j] !== kind || (back ? at >= t : at <= t)) continue;
          if (!best || (back ? at > best.t : at < best.t)) best = { t: at, thread };
        }
      });
      if (best) return best;
    }
    return undefined;
  }

  /** A window, once it is there. @param {number} i */
  async whole(i) {
    if (!this.windows[i]) {
      this.asked.add(i);
      this.windows[i] = readWindow(await unpack(this.text(i + 1)), this.head, this.head.windows[i]);
    }
  }
}
