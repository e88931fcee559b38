// Types of the timeline's data, for the checker alone: the page does not have this file.

/**
 * What the page says of its data before any of it is unpacked. Times are ns since the trace's begin.
 * @typedef {object} Head
 * @property {string} begin  CLOCK_MONOTONIC of time 0, ns: too long for a number.
 * @property {number} offset  Time 0, ns since the begin that links count from.
 * @property {number} span  Length of the trace, ns.
 * @property {number} bound  Error of the clock at most, ns.
 * @property {{width: number, count: number}} level  Buckets of the whole trace, and the width of one, ns.
 * @property {string[]} states  Parts of a thread's time, in the order of their numbers.
 * @property {string[]} marks  How sure, in the order of their numbers.
 * @property {string[]} causes  Causes of gaps, in the order of their numbers.
 * @property {string[]} strings  What `a` of a span is a number of, where nothing else is said; the first is empty.
 * @property {number[]} cpus
 * @property {ThreadRow[]} threads
 * @property {LockRow[]} locks
 * @property {EventKind[]} events
 * @property {Incident[]} incidents
 * @property {{from: number, to: number, says: string}[]} losses  Where records were lost.
 * @property {boolean} gaps  Threads have seen gaps in their own time.
 * @property {boolean} runs  Without the kernel: who ran when is what lies between those gaps.
 * @property {{from: number, to: number}[]} windows  Where every span is there: apart, in the order of time.
 */

/**
 * @typedef {object} ThreadRow
 * @property {number} pid
 * @property {number} tid  0: all threads that have no row of their own.
 * @property {string} name
 * @property {number} depth  Locks held at once, as far as there are lanes for them.
 * @property {number} scopes  Scopes open at once, as far as there are lanes for them.
 */

/**
 * @typedef {object} LockRow
 * @property {number} pid
 * @property {string} address  Hexadecimal.
 * @property {string} name
 */

/**
 * @typedef {object} EventKind
 * @property {string} name
 * @property {number} count  In the whole trace.
 * @property {boolean} quiet  Rows tell of it in another way: it is drawn faintly.
 */

/**
 * What a report names: where the timeline is worth a look.
 * @typedef {object} Incident
 * @property {number} from
 * @property {number} to
 * @property {number} tid
 * @property {string} [lock]  Address, hexadecimal.
 * @property {string} says
 */

/**
 * Spans in the order of their begins, as columns. What `kind`, `a` and `b` mean depends on the lane.
 * @typedef {object} Lane
 * @property {number} n
 * @property {Float64Array} start
 * @property {Float64Array} end
 * @property {Float64Array} reach  Latest end of this span and all before it.
 * @property {Uint8Array} kind
 * @property {Uint8Array} mark
 * @property {Uint32Array} a
 * @property {Uint32Array} b
 */

/**
 * The lanes of a window. Of a CPU: `run` (kind 0: a thread with a row, 1: another; `a` its name, `b` its row + 1) and
 * `irq` (`a` its name). Of a thread: `state` (kind: a number of `Head.states`; `a` the culprit's name; `b` its row + 1, or
 * when running the CPU + 1), `holds` and `waits` (kind 1: shared; `a` a number of `Head.locks`, or beyond them of a name; `b`
 * the place), `scopes` (`a` name, `b` depth), `gaps` (kind: a number of `Head.causes`; `a` culprit), `events` (`a` a number of
 * `Head.events`, `b` a number of `says`) and `wakes` (from the waking to the dispatch; `a` the waker's name, `b` its row + 1).
 * @typedef {object} Window
 * @property {number} from
 * @property {number} to
 * @property {string[]} says  What events say; the first is empty.
 * @property {Record<string, Lane>[]} cpus
 * @property {Record<string, Lane>[]} threads
 * @property {Record<string, Lane>[]} locks  `holds` and `waits` by lock; `b` is the thread's row + 1, `a` the place.
 */

/** @typedef {{from: number, to: number}} View */

/**
 * A row of the picture.
 * @typedef {object} Row
 * @property {"cpu" | "thread" | "lock"} kind
 * @property {number} index
 * @property {string} label
 * @property {string} hint
 */

export {};
