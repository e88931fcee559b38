// A link from a cell of a fleet's table leads to the page of that trace, and there to the interval.

import assert from 'node:assert/strict';
import path from 'node:path';
import {after, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {close, given, visit} from './browser.js';
import {time, within} from './units.js';

const file = given('FT_PAGE');
after(close);

const LINKS = '#worst figure.table td a[href*=".html#at="]';

/** @type {string[]} */
const hrefs = [];

/** @param {string} href */
const trace = href => href.split('#')[0];

test('the longest of the fleet have links to the pages of their traces', () =>
  visit(file, {}, async page => {
    for (const link of await page.locator(LINKS).all()) hrefs.push(await link.getAttribute('href') ?? '');
    assert(hrefs.length > 0);
    // Of two traces there are pages.
    assert.equal(new Set(hrefs.map(trace)).size, 2);
  }));

test('the page says that it is of a fleet, and the name of a trace stands on one line where there is room', () =>
  visit(file, {viewport: {width: 1280, height: 900}}, async page => {
    assert.equal(await page.title(), 'Feather-Trace: fleet');
    const lines = (/** @type {HTMLElement} */ element) => element.getClientRects().length;
    const link = page.locator(LINKS).first();
    assert.equal(await link.evaluate(lines), 1, await link.textContent() ?? '');
  }));

test('of each trace the first is followed to its interval', async () => {
  for (const [nth, href] of hrefs.entries()) {
    if (hrefs.findIndex(other => trace(other) === trace(href)) < nth) continue;
    await visit(file, {}, async page => {
      const link = page.locator(LINKS).nth(nth);
      const row = link.locator('xpath=ancestor::tr');
      const [, from, to, tid] = /#at=(-?\d+)-(-?\d+)&tid=(\d+)$/.exec(href) ?? [];
      assert((await row.textContent() ?? '').includes(tid), `the row says which thread: ${tid}`);
      await link.click();
      await page.locator('#timeline[data-ready=true]').waitFor();
      const opened = fileURLToPath(page.url().split('#')[0]);
      assert.equal(opened, path.join(path.dirname(file), decodeURIComponent(trace(href))));
      const span = page.locator('#timeline .tl-span');
      const shown = await span.textContent() ?? '';
      const length = within(shown, Number(from), Number(to));
      // Not the whole of it, in which the interval would be anyway.
      await page.locator('#timeline .tl-whole').click();
      await page.waitForFunction(shown => document.querySelector('#timeline .tl-span')?.textContent !== shown, shown);
      assert(length < time((await span.textContent() ?? '').split(' from ')[0]).ns / 2, shown);
      return [opened];
    });
  }
});
