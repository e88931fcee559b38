// A page of a trace of which there is not every detail: that of the interval that was asked for is there, event by event, and the
// page says what is not.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import {after, test} from 'node:test';
import {readWindow, unpack} from '../../ft-report/src/timeline/script/codec.js';
import {around, link} from '../../ft-report/src/timeline/script/view.js';
import {close, given, visit} from './browser.js';

const file = given('FT_PAGE');
after(close);

/** Times of CLOCK_MONOTONIC: the interval, and the events in it. @type {{from: number, to: number, times: number[]}} */
const asked = JSON.parse(fs.readFileSync(given('FT_ASKED'), 'utf8'));

/**
 * What the page has, as its script finds it.
 * @param {import('playwright-core').Page} page
 */
async function data(page) {
  await page.locator('#timeline[data-ready=true]').waitFor();
  /** @type {import('../../ft-report/src/timeline/script/types.js').Head} */
  const head = JSON.parse(await page.locator('#timeline .tl-head').textContent() ?? '');
  return {head, chunks: await page.locator('#timeline .tl-chunk').allTextContents()};
}

test('every event of the interval is in the page, and not every event of the trace', () =>
  visit(file, {}, async page => {
    const {head, chunks} = await data(page);
    const begin = Number(head.begin), [from, to] = [asked.from - begin, asked.to - begin];
    const i = head.windows.findIndex(window => window.from <= from && to <= window.to);
    assert(i >= 0, `${from} to ${to} is in none of ${JSON.stringify(head.windows)}`);
    const {threads} = readWindow(await unpack(chunks[i + 1]), head, head.windows[i]);
    const times = threads.flatMap(({events}) => Array.from(events.start)).filter(t => from <= t && t < to);
    assert.deepEqual(times.sort((a, b) => a - b), asked.times.map(t => t - begin));
    const covered = head.windows.reduce((sum, window) => sum + window.to - window.from, 0);
    assert(covered < head.span / 2, `${covered} of ${head.span}`);
  }));

test('the page says what is left out, and counts what is in view of the whole and of a part', () =>
  visit(file, {}, async page => {
    const {head} = await data(page);
    const note = await page.locator('#timeline .tl-note').textContent() ?? '';
    for (const said of ['Every detail of ', ' and of the interval that was asked for', 'Of all other time there are buckets']) assert(note.includes(said), note);
    const step = page.locator('#timeline .tl-kinds tr').filter({hasText: 'endless.step'});
    const inView = step.locator('td').nth(2);
    assert.equal(await inView.textContent(), await step.locator('td').nth(3).textContent(), 'of the whole trace');
    // So much inside of the interval that what is beside the link is in it, too.
    const begin = Number(head.begin), fifth = Math.floor((asked.to - asked.from) / 5);
    const [from, to] = [asked.from - begin + 2 * fifth, asked.to - begin - 2 * fifth];
    await page.evaluate(hash => { location.hash = hash; }, link({from: from + head.offset, to: to + head.offset}));
    const view = around(from, to, head.span);
    const expected = asked.times.filter(t => view.from <= t - begin && t - begin <= view.to).length;
    assert(expected > 100, `${expected}`);
    await page.waitForFunction(text => Array.from(document.querySelectorAll('#timeline .tl-kinds tr'), row =>
      row.textContent?.includes('endless.step') && row.children[2].textContent).includes(text), expected.toLocaleString('en'));
  }));
