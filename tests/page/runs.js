// A page of a recording without the kernel: who ran when is drawn from the gaps that threads saw, as the table `runs` has it, and the
// legend says so.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import {after, test} from 'node:test';
import {BAR, layout} from '../../ft-report/src/timeline/script/layout.js';
import {around, link} from '../../ft-report/src/timeline/script/view.js';
import {close, given, visit} from './browser.js';
import {keepShapes, shapes} from './canvas.js';

const file = given('FT_PAGE');
after(close);

/** Rows of the table, with times of CLOCK_MONOTONIC. @type {[pid: number, tid: number, ts: number, dur: number, cpu: number][]} */
const runs = JSON.parse(fs.readFileSync(given('FT_RUNS'), 'utf8'));

/** Where time begins in the picture, px. */
const LEFT = 150;

test('each run is drawn in the row of its thread and in that of its CPU, and nothing else is drawn as one', () =>
  visit(file, {viewport: {width: 1280, height: 6_000}}, async page => {
    await page.locator('#timeline[data-ready=true]').waitFor();
    /** @type {import('../../ft-report/src/timeline/script/types.js').Head} */
    const head = JSON.parse(await page.locator('#timeline .tl-head').textContent() ?? '');
    const legend = page.locator('#timeline .tl-legend span');
    const names = await legend.allTextContents();
    assert(names[0].startsWith('running (execution trace'), names[0]);
    assert(names.some(name => name.startsWith('gap that a thread saw')), `${names}`);
    const [width, color] = await page.locator('#timeline').evaluate(section => {
      const hex = (/** @type {string} */ n) => Number(n).toString(16).padStart(2, '0');
      const dot = /** @type {Element} */ (section.querySelector('.tl-legend .tl-dot'));
      const numbers = getComputedStyle(dot).backgroundColor.match(/\d+/g) ?? [];
      return /** @type {const} */ ([section.querySelector('.tl-stage')?.clientWidth ?? 0, `#${numbers.map(hex).join('')}`]);
    });
    const begin = Number(head.begin), rows = layout(head, [], new Set()).rows;
    const longest = [...runs].sort((a, b) => b[3] - a[3]).slice(0, 4);
    assert(longest.length === 4, 'there are runs');
    for (const [,, ts, dur] of longest) {
      const [from, to] = [ts - begin, ts - begin + dur], view = around(from, to, head.span);
      const measure = page.locator('#timeline .tl-measure');
      await measure.evaluate(element => { element.textContent = ''; });
      await page.evaluate(hash => { location.hash = hash; }, link({from: from + head.offset, to: to + head.offset}));
      await page.waitForFunction(() => document.querySelector('#timeline .tl-measure')?.textContent !== '');
      const x = (/** @type {number} */ t) => LEFT + (t - view.from) / (view.to - view.from) * (width - LEFT);
      const drawn = await shapes(page);
      const bars = drawn.filter(({what, path: [[, , , w, h]]}) => what === 'rect' && h === BAR && w >= 1);
      const expected = runs.flatMap(([pid, tid, ts, dur, cpu]) => {
        const [a, b] = [Math.max(ts - begin, view.from), Math.min(ts - begin + dur, view.to)];
        const thread = rows.find(({kind, index}) => kind === 'thread' && head.threads[index].pid === pid && head.threads[index].tid === tid);
        const on = rows.find(({kind, index}) => kind === 'cpu' && head.cpus[index] === cpu);
        assert(thread && on, `rows of thread ${tid} and CPU ${cpu}`);
        return b > a && x(b) - x(a) >= 1 ? [{x: x(a), w: x(b) - x(a), thread: thread.y + 2, cpu: on.y + 2}] : [];
      });
      assert(expected.length > 0);
      const isAt = (/** @type {typeof bars[0]} */ {path: [[, left, top, w]]}, /** @type {number} */ y, /** @type {typeof expected[0]} */ run) =>
        top === y && Math.abs(left - run.x) < 0.01 && Math.abs(w - run.w) < 0.01;
      for (const run of expected) {
        assert(bars.some(bar => bar.color === color && isAt(bar, run.thread, run)), `${JSON.stringify(run)} is not in the row of its thread`);
        assert(bars.some(bar => isAt(bar, run.cpu, run)), `${JSON.stringify(run)} is not in the row of its CPU`);
      }
      const ran = bars.filter(bar => bar.color === color);
      assert.deepEqual(ran.filter(bar => !expected.some(run => isAt(bar, run.thread, run))), []);
    }
    // From afar, too.
    await page.locator('#timeline .tl-whole').click();
    assert((await shapes(page)).some(({what, color: of}) => what === 'rect' && of === color), 'of the whole trace');
  }, keepShapes));
