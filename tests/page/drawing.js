// What the timeline draws of gaps, scopes, wake-ups, losses and events: each row of the tables is where its thread and its times
// say, and nothing is drawn that no row says. Of a recording that has some of each.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import {after, test} from 'node:test';
import {LANE, layout} from '../../ft-report/src/timeline/script/layout.js';
import {around, link} from '../../ft-report/src/timeline/script/view.js';
import {close, given, visit} from './browser.js';
import {keepShapes, shapes} from './canvas.js';

/** @typedef {import('../../ft-report/src/timeline/script/types.js').Head} Head */
/** @typedef {import('../../ft-report/src/timeline/script/types.js').View} View */
/** @typedef {import('../../ft-report/src/timeline/script/layout.js').Placed} Placed */
/** @typedef {import('./canvas.js').Shape} Shape */
/** @typedef {[pid: number, tid: number, ts: number, dur: number]} OfThread */

const file = given('FT_PAGE');
after(close);

/** @type {{gaps: OfThread[], scopes: OfThread[], open_scopes: [pid: number, tid: number, ts: number][], wakes: [...OfThread, waker: number][], losses: [ts: number, dur: number][], events: [pid: number, tid: number, ts: number, plain: boolean][]}} */
const tables = JSON.parse(fs.readFileSync(given('FT_DRAWN'), 'utf8'));

/** Where time begins in the picture, px. */
const LEFT = 150;

/** Places of each kind that are looked at. */
const PLACES = 6;

/** High enough that all rows are in sight. */
const viewport = {width: 1280, height: 12_000};

/**
 * Some of them, from the first to the last.
 * @template T @param {T[]} all
 */
const some = all => all.filter((_, i) => i % Math.ceil(all.length / PLACES) === 0);

/**
 * As much of a thing as is in view; nothing where it is not.
 * @param {View} view @param {number} from @param {number} to
 */
function cut(view, from, to) {
  const [begin, end] = [Math.max(from, view.from), Math.min(to, view.to)];
  return begin < end ? [begin, end] : undefined;
}

/** The picture of an interval: what is drawn, and where its rows and times are. */
class Picture {
  /** @param {Head} head @param {View} view @param {number} width @param {string} ink @param {Shape[]} drawn */
  constructor(head, view, width, ink, drawn) {
    this.head = head;
    this.view = view;
    this.ink = ink;
    this.drawn = drawn;
    this.scale = (width - LEFT) / (view.to - view.from);
    const rows = layout(head, [], new Set()).rows.filter(row => row.kind === 'thread');
    // The row of all others, in which what they do is drawn on top of each other.
    this.others = rows.find(row => head.threads[row.index].tid === 0);
    this.rows = new Map(rows.filter(row => row !== this.others).map(row => {
      const {pid, tid} = head.threads[row.index];
      return [`${pid} ${tid}`, row];
    }));
  }

  /** @param {number} t */
  x(t) {
    return LEFT + (t - this.view.from) * this.scale;
  }

  /** A time of a table. @param {number} ts */
  t(ts) {
    return ts - Number(this.head.begin);
  }

  /** The row of a thread, if it has one. @param {number} pid @param {number} tid */
  row(pid, tid) {
    return this.rows.get(`${pid} ${tid}`);
  }

  /** A height is in a row of one thread. @param {number} y */
  isOfThread(y) {
    return !this.others || y < this.others.y || y >= this.others.y + this.others.height;
  }

  /** Rectangles of a colour or of any, as numbers. @param {string} [color] */
  rects(color) {
    const rects = this.drawn.filter(shape => shape.what === 'rect' && (!color || shape.color === color));
    return rects.map(({path: [[, x, y, w, h]], alpha}) => ({x, y, w, h, alpha}));
  }

  /** A pixel is shorter than a bucket: spans are drawn. */
  get isClose() {
    return 1 / this.scale < this.head.level.width;
  }
}

/**
 * A shape is one of these, as far as they say, but for what computing with fractions costs.
 * @param {number[][]} shapes @param {number[]} shape
 */
const isIn = (shapes, shape) => shapes.some(other => other.every((n, i) => Math.abs(n - shape[i]) < 0.01));

/**
 * Both are the same, in whatever order.
 * @param {number[][]} drawn @param {number[][]} expected @param {string} what
 */
function same(drawn, expected, what) {
  const left = [...drawn];
  for (const one of expected) {
    const i = left.findIndex(other => isIn([other], one));
    assert(i >= 0, `${what}: ${one.map(n => n.toFixed(2))} is not drawn; what is: ${left.slice(0, 20).map(shape => shape.map(n => n.toFixed(2)).join(' ')).join('; ')}`);
    left.splice(i, 1);
  }
  assert.deepEqual(left, [], `${what}: drawn, and in no row of the table`);
}

/** Of what is at least a pixel wide. @param {Picture} picture */
function gaps(picture) {
  const expected = [];
  for (const [pid, tid, ts, dur] of tables.gaps) {
    const row = picture.row(pid, tid), seen = cut(picture.view, picture.t(ts), picture.t(ts) + dur);
    const band = row?.bands.find(band => band.lane === 'state');
    if (!row || !band || !seen) continue;
    const [x, w] = [picture.x(seen[0]), picture.x(seen[1]) - picture.x(seen[0])];
    if (w >= 1) expected.push([x, row.y + band.y + band.height - 3, w]);
  }
  const drawn = picture.rects(picture.ink).filter(({y, w, h}) => h === 3 && w >= 1 && picture.isOfThread(y));
  same(drawn.map(({x, y, w}) => [x, y, w]), expected, 'gaps');
  return expected.length;
}

/** @param {Picture} picture */
function scopes(picture) {
  /** The place of a thread's scopes. @param {Placed | undefined} row */
  const placeIn = row => {
    const found = row?.bands.find(band => band.lane === 'scopes');
    return row && found ? {top: row.y + found.y, end: row.y + found.y + found.height} : undefined;
  };
  /** @type {number[][]} */
  const expected = [];
  for (const [pid, tid, ts, dur] of tables.scopes) {
    const seen = cut(picture.view, picture.t(ts), picture.t(ts) + dur);
    const row = picture.row(pid, tid), place = placeIn(row);
    if (!seen || !row) continue;
    assert(place, 'a thread with scopes has a place for them');
    expected.push([picture.x(seen[0]), place.top, Math.max(picture.x(seen[1]) - picture.x(seen[0]), 0.7)]);
  }
  const places = Array.from(picture.rows.values(), placeIn);
  const drawn = picture.rects().flatMap(({x, y, w, h}) => {
    const place = places.find(place => place && place.top <= y && y < place.end && h === LANE - 1);
    return place ? [{x, y, w, top: place.top}] : [];
  });
  // Which of the lanes it is depends on those around it; each has one, and covers no other.
  for (const a of drawn) for (const b of drawn) assert(a === b || a.y !== b.y || a.x + a.w <= b.x + 0.7 || b.x + b.w <= a.x + 0.7, 'one scope covers another');
  const shapes = drawn.map(({x, top, w}) => [x, top, w]);
  const open = tables.open_scopes.map(([pid, tid, ts]) => [Math.max(picture.x(picture.t(ts)), LEFT), placeIn(picture.row(pid, tid))?.top ?? -1]);
  same(shapes.filter(shape => isIn(expected, shape) || !isIn(open, shape)), expected, 'scopes');
  return expected.length;
}

/** Of wake-ups by a thread that has a row, an arrow from there to the row of the woken. @param {Picture} picture */
function wakes(picture) {
  const expected = [], middle = 10;
  for (const [pid, tid, ts, dur, waker] of tables.wakes) {
    const [from, to] = [picture.row(pid, waker), picture.row(pid, tid)];
    const t = picture.t(ts);
    if (from && to && t >= picture.view.from && t <= picture.view.to && t + dur >= picture.view.from) expected.push([picture.x(t), from.y + middle, to.y + middle]);
  }
  const curves = picture.drawn.filter(({what, path}) => what === 'stroke' && path[1]?.[0] === 'bezierCurveTo');
  const ends = /** @type {number[][]} */ (curves.map(({path: [[, x, y], [,,,,, to, end]]}) => {
    assert.equal(x, to, 'an arrow is at one time');
    return [x, y, end];
  }));
  same(ends, expected, 'wake-ups');
  const heads = picture.drawn.filter(({what, path}) => what === 'fill' && path.length === 3 && path[1][1] === path[2][1] && path[1][1] > path[0][1]);
  same(heads.map(({path: [[, x, y]]}) => [x, y]), expected.map(([x,, y]) => [x, y]), 'heads of arrows');
  return expected.length;
}

/** From the top to the bottom. @param {Picture} picture */
function losses(picture) {
  const drawn = picture.rects().filter(({y, alpha}) => y === 0 && alpha === 0.25);
  const expected = [];
  for (const [ts, dur] of tables.losses) {
    const [from, to] = [picture.t(ts), picture.t(ts) + dur];
    if (to < picture.view.from || from > picture.view.to) continue;
    const x = Math.max(picture.x(from), LEFT);
    expected.push([x, Math.max(Math.min(picture.x(to), picture.x(picture.view.to)) - x, 2)]);
  }
  same(drawn.map(({x, w}) => [x, w]), expected, 'losses');
  const bottom = Math.max(...[...picture.rows.values()].map(row => row.y + row.height));
  assert(drawn.every(({h}) => h >= bottom), 'a loss touches all rows');
  return expected.length;
}

/** A triangle for each pixel that has an event, and a dash for one of a lock, a scope or a poll. @param {Picture} picture */
function events(picture) {
  /** @type {Set<string>[]} */
  const [dashes, triangles] = [new Set(), new Set()];
  for (const [pid, tid, ts, plain] of tables.events) {
    const row = picture.row(pid, tid), t = picture.t(ts);
    if (row && t >= picture.view.from && t <= picture.view.to) (plain ? triangles : dashes).add(`${row.y + 1} ${Math.floor(picture.x(t))}`);
  }
  const points = picture.drawn.filter(({what, path}) => what === 'fill' && path.length === 3 && path[0][2] === path[1][2] && path[2][2] === path[0][2] + 5);
  const drawn = points.filter(({path: [[,, y]]}) => picture.isOfThread(y)).map(({path: [[,, y],, [, x]]}) => `${y} ${Math.floor(x)}`);
  assert.deepEqual([...new Set(drawn)].sort(), [...triangles].sort(), 'events');
  const quiet = new Set(picture.rects(picture.ink).filter(({w, h}) => w === 0.7 && h === 3).map(({x, y}) => `${y + 1} ${Math.floor(x)}`));
  // What the kernel recorded of the thread has them, too.
  assert.deepEqual([...dashes].filter(at => !quiet.has(at)), [], 'events of locks, scopes and polls');
  return triangles.size;
}

/** @type {[string, (picture: Picture) => number, View[]][]} */
const KINDS = [
  ['gaps', gaps, tables.gaps.map(([,, ts, dur]) => ({from: ts, to: ts + dur}))],
  ['scopes', scopes, tables.scopes.map(([,, ts, dur]) => ({from: ts, to: ts + dur}))],
  ['wake-ups', wakes, tables.wakes.map(([,, ts, dur]) => ({from: ts, to: ts + dur}))],
  ['losses', losses, tables.losses.map(([ts, dur]) => ({from: ts, to: ts + dur}))],
  ['events', events, tables.events.filter(([,,, plain]) => plain).map(([,, ts]) => ({from: ts - 20_000, to: ts + 20_000}))],
];

test('gaps, scopes, wake-ups, losses and events are drawn where their rows of the tables say, and nothing else is', () =>
  visit(file, {viewport}, async page => {
    await page.locator('#timeline[data-ready=true]').waitFor();
    /** @type {Head} */
    const head = JSON.parse(await page.locator('#timeline .tl-head').textContent() ?? '');
    const [ink, width] = await page.locator('#timeline').evaluate(section => /** @type {const} */ ([
      getComputedStyle(section).getPropertyValue('--tl-ink').trim(), section.querySelector('.tl-stage')?.clientWidth ?? 0]));
    const begin = Number(head.begin);
    const counted = new Map(KINDS.map(([what]) => [what, 0]));
    for (const [of,, places] of KINDS) {
      assert(places.length > 0, `the recording has ${of}`);
      for (const {from, to} of some(places)) {
        // The same place again, of another kind, would be no change.
        const hash = link({from: from - begin + head.offset, to: to - begin + head.offset});
        if (hash === await page.evaluate(() => location.hash)) continue;
        const measure = page.locator('#timeline .tl-measure');
        await measure.evaluate(element => { element.textContent = ''; });
        await page.evaluate(hash => { location.hash = hash; }, hash);
        await page.waitForFunction(() => document.querySelector('#timeline .tl-measure')?.textContent !== '');
        const view = around(from - begin, to - begin, head.span);
        const picture = new Picture(head, view, width, ink, await shapes(page));
        for (const [what, check] of KINDS) {
          // From afar there are shares of time instead.
          if (picture.isClose || what === 'losses') counted.set(what, (counted.get(what) ?? 0) + check(picture));
        }
      }
    }
    for (const [what, count] of counted) assert(count > 0, `${what} were in view`);
  }, keepShapes));
