// The parts of the timeline's script that need no page.

import assert from 'node:assert/strict';
import {deflateSync} from 'node:zlib';
import {test} from 'node:test';
import {empty, numbers, readLevel, readWindow, unpack} from '../../ft-report/src/timeline/script/codec.js';
import {layout, rowAt, stack} from '../../ft-report/src/timeline/script/layout.js';
import {density, mark} from '../../ft-report/src/timeline/script/marks.js';
import {Model, search, touching, whole} from '../../ft-report/src/timeline/script/model.js';
import {Painter} from '../../ft-report/src/timeline/script/paint.js';
import * as view from '../../ft-report/src/timeline/script/view.js';

/** @typedef {import('../../ft-report/src/timeline/script/types.js').Head} Head */
/** @typedef {[from: number, to: number, kind: number, a?: number, b?: number]} Span */

/** @param {number} n @returns {number[]} */
const leb = n => n < 128 ? [n] : [128 | n % 128, ...leb(Math.floor(n / 128))];

/**
 * As `encode.rs` writes a lane.
 * @param {number} from
 * @param {Span[]} spans
 */
function lane(from, ...spans) {
  const begins = spans.map(([begin], i) => begin - (i ? spans[i - 1][0] : from));
  const columns = [begins, spans.map(s => s[1] - s[0]), spans.map(s => s[2] << 2), spans.map(s => s[3] ?? 0), spans.map(s => s[4] ?? 0)];
  return [...leb(spans.length), ...columns.flat().flatMap(leb)];
}

/** @param {number[]} bytes */
const pack = bytes => deflateSync(Uint8Array.from(bytes)).toString('base64');

/** @type {Head} */
const head = {
  begin: '9007199254740993', offset: 0, span: 1000, bound: 10, level: {width: 250, count: 4},
  states: ['running', 'preempted', 'blocked'], marks: ['exact', 'disturbed', 'lower bound', 'censored'], causes: ['switched-out'],
  strings: ['', 'rival', 'demo.rs:9'], cpus: [0],
  threads: [{pid: 1, tid: 5, name: 'a', depth: 1, scopes: 0}, {pid: 1, tid: 6, name: 'b', depth: 0, scopes: 0}],
  locks: [{pid: 1, address: '4c', name: 'L'}],
  events: [{name: 'x.y', count: 3, quiet: false}, {name: 'lock.release', count: 1, quiet: true}],
  incidents: [], losses: [], gaps: false, runs: false, windows: [{from: 200, to: 600}],
};

const says = [1, 2, 0x68, 0x69];
const nothing = lane(200);
const bytes = [
  ...says,
  ...lane(200, [200, 400, 0, 1, 1]), ...nothing,
  // a: preempted by rival from 300 to 420; holds L; two events.
  ...lane(200, [200, 300, 0, 0, 1], [300, 420, 1, 1], [420, 600, 0, 0, 1]), ...lane(200, [250, 450, 0, 0, 2]), ...nothing, ...nothing, ...nothing,
  ...lane(200, [260, 260, 0, 0, 1], [450, 450, 0, 1]), ...nothing,
  // b: waits for L; one event.
  ...lane(200, [200, 600, 2]), ...nothing, ...lane(200, [280, 460, 0, 0, 0]), ...nothing, ...nothing, ...lane(200, [500, 500, 0, 0]), ...nothing,
];
// a ran all the time but for 120 ns, b slept.
const level = [
  1, ...[250, 150, 0, 0].flatMap(leb), 0,
  1, ...[250, 130, 250, 250].flatMap(leb), 2, ...[0, 120, 0, 0].flatMap(leb), 0,
  3, ...[250, 250, 250, 250].flatMap(leb), 0,
  1, ...[0, 200, 0, 0].flatMap(leb), 0,
  // Of the three of the one kind the last is behind the window; the other's is in it.
  1, ...[0, 1, 2, 0].flatMap(leb), 0, 1, ...[0, 1, 0, 0].flatMap(leb), 0,
];

async function model() {
  const chunks = [pack(level), pack(bytes)];
  const made = new Model(head, i => chunks[i], () => {});
  await made.begin();
  return made;
}

test('numbers of any length come back, and data that ends too early is an error', () => {
  for (const n of [0, 127, 128, 300, 2 ** 32, 2 ** 53 - 1]) assert.equal(numbers(Uint8Array.from(leb(n)))(), n);
  assert.throws(numbers(Uint8Array.from([0x80])), RangeError);
});

test('what was packed is unpacked', async () => {
  assert.deepEqual([...await unpack(pack([1, 2, 3]))], [1, 2, 3]);
});

test('a window has its lanes, and its holds by lock', () => {
  const window = readWindow(Uint8Array.from(bytes), head, head.windows[0]);
  assert.deepEqual(window.says, ['', 'hi']);
  const {state, events} = window.threads[0];
  assert.deepEqual([...state.start], [200, 300, 420]);
  assert.deepEqual([...state.end], [300, 420, 600]);
  assert.deepEqual([...events.start], [260, 450]);
  const {holds, waits} = window.locks[0];
  assert.deepEqual([holds.start[0], holds.end[0], holds.a[0], holds.b[0]], [250, 450, 2, 1]);
  assert.deepEqual([waits.start[0], waits.end[0], waits.b[0]], [280, 460, 2]);
});

test('buckets are sums from the begin', () => {
  const rows = readLevel(Uint8Array.from(level), head);
  assert.deepEqual([...rows[1][1] ?? []], [0, 0, 120, 120, 120]);
  assert.equal(rows[2][0], undefined);
});

test('spans that touch an interval are found, whatever covers them', () => {
  const spans = empty(4);
  spans.start.set([0, 10, 20, 30]);
  spans.end.set([100, 12, 22, 32]);
  spans.reach.set([100, 100, 100, 100]);
  assert.deepEqual(touching(spans, 25, 28), [0, 3]);
  spans.end[0] = 5;
  spans.reach.set([5, 12, 22, 32]);
  assert.deepEqual(touching(spans, 13, 25), [2, 3]);
  assert.equal(search(10, i => i >= 7), 7);
});

test('parts are whole numbers that sum to the interval', () => {
  assert.deepEqual(whole([1.4, 1.3, 1.3], 4), [2, 1, 1]);
  assert.deepEqual(whole([5, 0], 5), [5, 0]);
});

test('a decomposition is exact where buckets are whole or spans are there, and says where it is not', async () => {
  const made = await model();
  const all = made.decompose(0, 0, 1000);
  assert.deepEqual(all, {parts: [880, 120, 0, 0], blur: 0, pending: false});
  // Ends inside of the window: unpacked first.
  assert.equal(made.decompose(0, 310, 400).pending, true);
  await made.whole(0);
  assert.deepEqual(made.decompose(0, 310, 400), {parts: [0, 90, 0, 0], blur: 0, pending: false});
  assert.deepEqual(made.decompose(0, 210, 590), {parts: [260, 120, 0, 0], blur: 0, pending: false});
  // One end in a bucket of which no span is there.
  const blurred = made.decompose(0, 300, 900);
  assert.equal(blurred.blur, 150);
  assert.equal(blurred.parts.reduce((sum, ns) => sum + ns, 0), 600);
  assert.equal(made.decompose(0, 650, 700).blur, 50);
  assert.deepEqual(made.culprits(0, 0, 1000).find(c => c.state === 1), {state: 1, name: 'rival', ns: 120, times: 1});
});

test('the events beside a time come in order, of one thread or of all, but for those that are hidden', async () => {
  const made = await model();
  await made.whole(0);
  const times = (/** @type {ReturnType<Model['near']>} */ near) => near.map(e => e.t);
  assert.deepEqual(times(made.near(300, 0, 5, () => true)), [260, 450]);
  assert.deepEqual(times(made.near(300, undefined, 5, () => true)), [260, 450, 500]);
  assert.deepEqual(times(made.near(300, undefined, 5, kind => kind === 0)), [260, 500]);
  assert.equal(made.near(300, 0, 5, () => true)[0].says, 'hi');
  assert.deepEqual(made.near(900, 0, 5, () => true), []);
  assert.deepEqual(await made.next(0, 260, false), {t: 500, thread: 1});
  assert.deepEqual(await made.next(0, 500, true), {t: 260, thread: 0});
  assert.equal(await made.next(0, 500, false), undefined);
});

test('the events of each kind are counted in any interval, and where a bucket is cut that is said', async () => {
  const made = await model();
  const exact = {about: [false, false]};
  assert.deepEqual(made.count(0, 1000), {counts: [3, 1], ...exact}, 'of whole buckets nothing needs to be unpacked');
  await made.whole(0);
  for (const [from, to, counts] of /** @type {[number, number, number[]][]} */ ([
    [200, 600, [2, 1]], [260, 450, [1, 1]], [261, 499, [0, 1]], [261, 500, [1, 1]], [450, 450.5, [0, 1]], [501, 599, [0, 0]], [0, 250, [0, 0]], [750, 1000, [0, 0]],
  ])) assert.deepEqual(made.count(from, to), {counts, ...exact}, `${from} to ${to}`);
  assert.deepEqual(made.count(0, 650), {counts: [2, 1], about: [true, false]});
  assert.deepEqual(made.count(610, 620), {counts: [0, 0], about: [true, false]});
});

/**
 * A painter of the model whose picture is so wide, and what it draws.
 * @param {Model} made @param {number} from @param {number} to @param {number} width
 */
function painter(made, from, to, width) {
  /** @type {{x: number, w: number, h: number, alpha: number}[]} */
  const drawn = [];
  const ctx = {globalAlpha: 1, fillStyle: '', fillRect(/** @type {number} */ x, /** @type {number} */ _, /** @type {number} */ w, /** @type {number} */ h) { drawn.push({x, w, h, alpha: this.globalAlpha}); }};
  const theme = {hue: (/** @type {number} */ n) => `${n}`};
  return {drawn, painter: new Painter(/** @type {any} */ (ctx), made, /** @type {any} */ (theme), {from, to}, 150, 150 + width)};
}

test('a kind of event has marks at every scale, and each of its events is in them', async () => {
  const made = await model();
  await made.whole(0);
  // From afar, two buckets a pixel.
  assert.deepEqual([...density(painter(made, 0, 1000, 2).painter, 0)], [[150, 1], [151, 2]]);
  assert.deepEqual([...density(painter(made, 0, 1000, 2).painter, 1)], [[150, 1]]);
  // Closer: where they are to the pixel, and of the one that no window has, its bucket as far as it is not in the window.
  for (const width of [20, 100, 1000]) {
    const found = density(painter(made, 0, 1000, width).painter, 0), scale = width / 1000;
    const lines = [...found].filter(([x]) => x < 150 + Math.floor(600 * scale)), rest = [...found].filter(([x]) => x >= 150 + Math.floor(600 * scale));
    assert.deepEqual(lines, [260, 500].map(t => [150 + Math.floor(t * scale), 1]), `${width}`);
    assert.equal(Math.min(...rest.map(([x]) => x)), 150 + Math.floor(600 * scale));
    assert.equal(Math.max(...rest.map(([x]) => x)), 149 + Math.ceil(750 * scale));
    assert.ok(Math.abs(rest.reduce((sum, [, n]) => sum + n, 0) - 1) < 1e-9);
  }
  // Each scale from the whole to the closest, around each of them.
  for (const t of [260, 450, 500]) {
    for (let length = 1000; length >= 1; length /= 2) {
      const {drawn, painter: close} = painter(made, t - length / 3, t + length / 2, 400);
      mark(close, t === 450 ? 1 : 0, 77);
      const at = Math.floor(close.x(t));
      assert.ok(drawn.some(({x}) => Math.abs(x - at) <= (close.close ? 0 : 1)), `${t} at ${length}`);
      for (const {w, h, alpha} of drawn) assert.ok(w === 1 && h === 77 && alpha >= 0.3 && alpha <= 1);
    }
  }
});

test('many events of a pixel have a stronger mark than one', async () => {
  const made = await model();
  const {drawn, painter: far} = painter(made, 0, 1000, 2);
  mark(far, 0, 9);
  assert.deepEqual(drawn.map(({x}) => x), [150, 151]);
  assert.ok(drawn[0].alpha < drawn[1].alpha && drawn[1].alpha === 1);
});

test('a view stays in the trace and is never shorter than 100 ns', () => {
  assert.deepEqual(view.clamp({from: -50, to: 50}, 1000), {from: 0, to: 100});
  assert.deepEqual(view.clamp({from: 900, to: 1300}, 1000), {from: 600, to: 1000});
  assert.deepEqual(view.pan({from: 0, to: 100}, 0.5, 1000), {from: 50, to: 150});
  const closest = view.zoom({from: 400, to: 600}, 1e-9, 450, 1000);
  assert.equal(closest.to - closest.from, view.CLOSEST);
  assert.ok(Math.abs((450 - closest.from) / view.CLOSEST - 0.25) < 1e-9, 'the place under the mouse stays');
  assert.deepEqual(view.zoom({from: 400, to: 600}, 1e9, 450, 1000), {from: 0, to: 1000});
  const shown = view.around(500, 500, 1000);
  assert.ok(shown.from < 500 && shown.to > 500);
});

test('times are written with the digits that they need', () => {
  assert.deepEqual([0, 812, 1234, 45_600_000, 1e9].map(view.duration), ['0 ns', '812 ns', '1.23 µs', '45.6 ms', '1.00 s']);
  assert.equal(view.exactly(1234567), '1 234 567 ns');
  assert.equal(view.moment(5_211_205_702, 1), '5.211205702 s');
  assert.equal(view.moment(5_211_205_702, 1e6), '5.211 s');
  const {step, times} = view.ticks({from: 95, to: 1010}, 5);
  assert.deepEqual([step, times], [200, [200, 400, 600, 800, 1000]]);
});

test('a link means a place, and nothing else does', () => {
  const at = {from: 12, to: 90, tid: 7, lock: '7f00c0'};
  assert.deepEqual(view.place(view.link(at)), at);
  assert.deepEqual(view.place('#at=5-6'), {from: 5, to: 6});
  assert.deepEqual(view.place('#at=-36-5'), {from: -36, to: 5});
  assert.deepEqual(view.place('#at=-36--5'), {from: -36, to: -5});
  assert.deepEqual(view.place('#at=5-6&lock=0x7F00C0'), {from: 5, to: 6, lock: '7f00c0'});
  for (const wrong of ['', '#locks', '#at=', '#at=9-5', '#at=-3--5', '#at=1e9-2e9', '#at=5']) assert.equal(view.place(wrong), undefined, wrong);
  assert.deepEqual(view.place('#at=5-6&tid=x&lock=<b>'), {from: 5, to: 6});
});

test('rows stand in their groups, those in focus first and once', () => {
  const {rows, height} = layout(head, [{kind: 'thread', index: 1}], new Set(['Locks']));
  assert.deepEqual(rows.map(r => r.label), ['▾ In focus', 'b 6', '▾ CPUs', 'CPU 0', '▸ Locks', '▾ Threads', 'a 5']);
  assert.equal(rowAt(rows, rows[3].y + 3)?.band?.lane, 'run');
  assert.equal(rowAt(rows, height), undefined);
  assert.deepEqual(stack([0, 1, 2, 6], [5, 3, 4, 7], 0, 4, 2), [0, 1, -1, 0]);
});
