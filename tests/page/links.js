// Links from the tables of the longest to the timeline: each row of them has one, and it leads to where its interval is. Of a
// recording that has rows for all of these tables.

import assert from 'node:assert/strict';
import {after, test} from 'node:test';
import {close, given, visit} from './browser.js';
import {within} from './units.js';

const file = given('FT_PAGE');
after(close);

for (const [section, title] of [
  ['locks', 'The longest holds'],
  ['waits', 'The longest waits'],
  ['dispatch', 'The worst wake-ups'],
  ['gaps', 'The longest gaps'],
]) {
  test(`${section}: ${title}`, () =>
    visit(file, {}, async page => {
      await page.locator('#timeline[data-ready=true]').waitFor();
      const table = page.locator(`#${section} figure.table`).filter({has: page.locator('figcaption', {hasText: title})});
      const rows = table.locator('tbody tr');
      const count = await rows.count();
      assert(count > 0, 'it has rows');
      assert.equal(await rows.filter({has: page.locator('a.at')}).count(), count, 'each row has its link');

      const link = rows.first().locator('a.at');
      const [, from, to] = /^#at=(-?\d+)-(-?\d+)/.exec(await link.getAttribute('href') ?? '') ?? [];
      const shown = page.locator('#timeline .tl-span');
      const whole = await shown.textContent();
      await link.click();
      await page.waitForFunction(whole => document.querySelector('#timeline .tl-span')?.textContent !== whole, whole);
      within(await shown.textContent() ?? '', Number(from), Number(to));
    }));
}
