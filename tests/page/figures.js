// The papers' figures: that each is in the page of a recording that has data for all of them, on its axes, of all together and of
// each lock or thread, with its data as a file.

import assert from 'node:assert/strict';
import {after, test} from 'node:test';
import {close, given, visit} from './browser.js';

const file = given('FT_PAGE');
after(close);

const HISTOGRAM = {axis: 'x log', shapes: 'polygon, polyline', bin: 100};

/**
 * By section and the begin of the title. Where `counts`, there are enough of them that their axis shows that it is logarithmic.
 * @type {{section: string, title: string, columns: string, axis?: string, counts?: boolean, shapes: string, each?: string, bin?: number}[]}
 */
const FIGURES = [
  {section: 'locks', title: 'Distribution of the hold times', columns: 'from_ns,holds,not_longer_share', each: 'book', counts: true, ...HISTOGRAM},
  {section: 'locks', title: 'Nesting depth', columns: 'depth,holds', each: 'book', axis: 'x linear', counts: true, shapes: 'rect'},
  {section: 'locks', title: 'Hold times over the time', columns: 'from_ns,holds,mean_ns,max_ns', each: 'book', axis: 'x linear', shapes: 'circle'},
  {section: 'waits', title: 'Distribution of the waits', columns: 'from_ns,waits,not_longer_share', each: 'book', ...HISTOGRAM},
  {section: 'waits', title: 'Who waited for which lock', columns: 'lock,thread,waits,total_ns', shapes: 'td[style^="--heat:"]'},
  {section: 'dispatch', title: 'Distribution of the latency', columns: 'from_ns,wake_ups,not_longer_share', each: 'matcher', ...HISTOGRAM},
  {section: 'gaps', title: 'Distribution of the gaps', columns: 'from_ns,gaps,not_longer_share', each: 'poller', ...HISTOGRAM},
  {section: 'time', title: 'Time of each thread by its parts',
    columns: 'thread,tid,running_ns,preempted_ns,dispatch_ns,blocked_ns,hardirq_ns,softirq_ns,vector_ns,unexplained_ns', axis: 'y linear', shapes: 'rect'},
];

for (const {section, title, columns, axis, counts, shapes, each, bin} of FIGURES) {
  test(`${section}: ${title}`, () =>
    visit(file, {}, async page => {
      const figure = page.locator(`#${section} figure`).filter({has: page.locator('figcaption', {hasText: title})});
      assert.equal(await figure.count(), 1, 'it is there, once');
      const drawings = await figure.locator('.drawing').count() ? figure.locator('.drawing') : figure;
      const drawn = await drawings.evaluateAll((drawings, shapes) => drawings.map(drawing => ({
        shapes: drawing.querySelectorAll(shapes).length,
        axis: drawing.querySelector('.canvas')?.getAttribute('data-axis') ?? '',
        // Where a decade of counts lies, from the left: its label ends beside the axis.
        decades: Array.from(drawing.querySelectorAll('svg text[text-anchor=end]'), text =>
          [Number(text.textContent?.replace(' k', '000').replace('k', '000')), Number(text.getAttribute('y'))])
          .filter(([count]) => [1, 10, 100, 1000].includes(count)),
        csv: decodeURIComponent(drawing.querySelector('a.csv')?.getAttribute('href') ?? '').split(',').slice(1).join(',').trimEnd().split('\n'),
      })), shapes);
      for (const {shapes, axis: has, csv} of drawn) {
        assert(shapes > 0, 'something is drawn');
        assert.equal(csv[0], columns);
        assert(csv.length > 1, 'its file has rows');
        assert(!axis || has.startsWith(axis), `${has}, not ${axis}`);
        if (!bin) continue;
        const rows = csv.slice(1).map(line => line.split(',').map(Number));
        assert(rows.every(([from, n], i) => from % bin === 0 && n > 0 && (i === 0 || from > rows[i - 1][0])), 'bins of 0.1 µs, ascending');
        assert(rows.every(([,, share], i) => i === 0 || share >= rows[i - 1][2]) && rows.at(-1)?.[2] === 1, 'the shares end with all');
      }
      if (counts) {
        // Ten times as many are as much higher each time.
        const steps = drawn[0].decades.map(([, y]) => y).sort((a, b) => b - a).map((y, i, all) => (all[i - 1] ?? NaN) - y).slice(1);
        assert(steps.length >= 2 && steps.every(step => Math.abs(step - steps[0]) <= 2), `${drawn[0].decades}`);
      }
      if (each) {
        const names = await figure.locator('option').allTextContents();
        assert.equal(names[0], 'all');
        // Of two of one name each has its number behind it.
        assert(names.some(name => name === each || name.startsWith(`${each} `)), `${each} in ${names}`);
        assert.equal(names.length, drawn.length);
      }
    }));
}

test('under the pointer is what is drawn there: a bin as the file has it, and between bins that there is none', () =>
  visit(file, {}, async page => {
    const figure = page.locator('#locks figure').filter({has: page.locator('figcaption', {hasText: 'Distribution of the hold times'})});
    const drawing = figure.locator('.drawing').first(), svg = drawing.locator('svg');
    const [, scale, ...numbers] = (await drawing.locator('.canvas').getAttribute('data-axis') ?? '').split(' ');
    assert.equal(scale, 'log');
    const [low, high, first, last,, width] = numbers.map(Number);
    const lines = decodeURIComponent(await drawing.locator('a.csv').getAttribute('href') ?? '').split(',').slice(1).join(',').trimEnd().split('\n');
    const rows = lines.slice(1).map(line => line.split(',').map(Number));
    const x = (/** @type {number} */ ns) => Math.floor(first + Math.log(Math.max(ns, low) / low) / Math.log(high / low) * (last - first));
    const size = await svg.evaluate(svg => [svg.clientWidth / Number(svg.getAttribute('width')), svg.clientHeight / 2]);
    const say = async (/** @type {number} */ pixel) => {
      await svg.hover({position: {x: (pixel + 0.5) * size[0], y: size[1]}});
      return await drawing.locator('output').textContent() ?? '';
    };
    let bins = 0, holes = 0;
    for (const [i, [from, n, share]] of rows.entries()) {
      const next = rows[i + 1] ? x(rows[i + 1][0]) : last;
      const shared = rows.filter(row => x(row[0]) <= x(from) && x(row[0] + width) >= x(from));
      if (bins < 8 && shared.length === 1) {
        assert.match(await say(x(from)), new RegExp(`^from .*, holds ${n}, not longer ${(100 * share).toFixed(1)} %$`), `at ${from}`);
        bins += 1;
      }
      if (holes < 8 && next - x(from + width) > 3) {
        assert.equal(await say(next - 2), `holds 0, not longer ${(100 * share).toFixed(1)} %`, `behind ${from}`);
        holes += 1;
      }
    }
    assert(bins > 0 && holes > 0, `${bins} bins and ${holes} holes`);
  }));
