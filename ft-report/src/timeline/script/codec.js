// @ts-check
// From the text in the page to lanes of spans and series of buckets; the other end is `encode.rs`.

/** @typedef {import("./types.js").Head} Head */
/** @typedef {import("./types.js").Lane} Lane */
/** @typedef {import("./types.js").Window} Window */

/**
 * The bytes that the page has as base64 of zlib.
 * @param {string} text @returns {Promise<Uint8Array>}
 */
export async function unpack(text) {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Reads numbers, seven bits a byte, the lowest first (LEB128); below 2^53.
 * Between them may be texts, each behind its length in bytes.
 * @param {Uint8Array} bytes @returns {(() => number) & {text: () => string}}
 */
export function numbers(bytes) {
  let at = 0;
  const next = () => {
    let value = 0;
    for (let scale = 1; at < bytes.length; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw new RangeError("the data of the timeline ends too early");
  };
  next.text = () => {
    const length = next();
    return UTF8.decode(bytes.subarray(at, (at += length)));
  };
  return next;
}

const UTF8 = new TextDecoder();

/** @param {number} n @returns {Lane} */
export function empty(n) {
  return {
    n,
    start: new Float64Array(n),
    end: new Float64Array(n),
    reach: new Float64Array(n),
    kind: new Uint8Array(n),
    mark: new Uint8Array(n),
    a: new Uint32Array(n),
    b: new Uint32Array(n),
  };
}

/** @param {Lane} lane @returns {Lane} */
function reached(lane) {
  for (let i = 0, reach = 0; i < lane.n; i++) lane.reach[i] = reach = Math.max(reach, lane.end[i]);
  return lane;
}

/**
 * @param {() => number} next @param {number} from  Begin of the window.
 * @returns {Lane}
 */
function lane(next, from) {
  const lane = empty(next());
  const { n, start, end, kind, mark, a, b } = lane;
  for (let i = 0, at = from; i < n; i++) start[i] = at += next();
  for (let i = 0; i < n; i++) end[i] = start[i] + next();
  for (let i = 0; i < n; i++) {
    const word = next();
    kind[i] = word >> 2;
    mark[i] = word & 3;
  }
  for (let i = 0; i < n; i++) a[i] = next();
  for (let i = 0; i < n; i++) b[i] = next();
  return reached(lane);
}

/** The lanes of a CPU, a thread and a lock, in the order in which they are written. */
const LANES = {
  cpu: ["run", "irq"],
  thread: ["state", "holds", "waits", "scopes", "gaps", "events", "wakes"],
};

/**
 * What the threads hold and wait for, by lock.
 * @param {Record<string, Lane>[]} threads @param {"holds" | "waits"} what @param {number} locks
 */
function byLock(threads, what, locks) {
  /** @type {[thread: number, span: number][][]} */
  const found = Array.from({ length: locks }, () => []);
  threads.forEach((thread, t) => {
    thread[what].a.forEach((lock, i) => lock < locks && found[lock].push([t, i]));
  });
  return found.map((spans) => {
    spans.sort(([t, i], [u, j]) => threads[t][what].start[i] - threads[u][what].start[j]);
    const lane = empty(spans.length);
    spans.forEach(([t, i], to) => {
      const from = threads[t][what];
      lane.start[to] = from.start[i];
      lane.end[to] = from.end[i];
      lane.kind[to] = from.kind[i];
      lane.mark[to] = from.mark[i];
      lane.a[to] = from.b[i];
      lane.b[to] = t + 1;
    });
    return reached(lane);
  });
}

/**
 * A window of full detail.
 * @param {Uint8Array} bytes @param {Head} head @param {{from: number, to: number}} window
 * @returns {Window}
 */
export function readWindow(bytes, head, { from, to }) {
  const next = numbers(bytes);
  const says = ["", ...Array.from({ length: next() }, next.text)];
  /** @param {string[]} names */
  const lanes = (names) => Object.fromEntries(names.map((name) => [name, lane(next, from)]));
  const cpus = head.cpus.map(() => lanes(LANES.cpu));
  const threads = head.threads.map(() => lanes(LANES.thread));
  const holds = byLock(threads, "holds", head.locks.length);
  const waits = byLock(threads, "waits", head.locks.length);
  const locks = holds.map((holds, i) => ({ holds, waits: waits[i] }));
  return { from, to, says, cpus, threads, locks };
}

/**
 * How long each row was in each state up to the begin of each bucket, and at the end of the last: by row, as
 * CPUs, threads and locks stand in the head, and by number of the state; what never was is not there. Behind them, of each kind of
 * event, how many there were.
 * @param {Uint8Array} bytes @param {Head} head
 * @returns {(Float64Array | undefined)[][]}
 */
export function readLevel(bytes, head) {
  const next = numbers(bytes);
  const { count } = head.level;
  const rows = head.cpus.length + head.threads.length + head.locks.length + head.events.length;
  return Array.from({ length: rows }, () => {
    /** @type {(Float64Array | undefined)[]} */
    const series = [];
    for (let state; (state = next()) !== 0; ) {
      const sums = new Float64Array(count + 1);
      for (let i = 0; i < count; i++) sums[i + 1] = sums[i] + next();
      series[state - 1] = sums;
    }
    return series;
  });
}
