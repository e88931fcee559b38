// Links from the tables of the longest to the timeline: each row of them has one, and it leads to where its interval is. Of a
// recording that has rows for all of these tables.

import assert from 'node:assert/strict';
import {after, test} from 'node:test';
import {close, given, visit} from './browser.js';

const file = given('FT_PAGE');
after(close);

/** Units of the times that the timeline shows, in ns. */
const UNITS = {ns: 1, µs: 1e3, ms: 1e6, s: 1e9};

/**
 * The time that some text is, and how far the truth may be from it by the digits that it has.
 * @param {string} text
 */
function time(text) {
  const [number, unit] = text.split(' ');
  const scale = UNITS[/** @type {keyof typeof UNITS} */ (unit)];
  assert(scale, `${text} is no time`);
  return {ns: Number(number) * scale, within: scale / 10 ** (number.split('.')[1]?.length ?? 0)};
}

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
      const [length, begin] = (await shown.textContent() ?? '').split(' from ').map(time);
      const [within, end] = [begin.within + length.within, begin.ns + length.ns];
      assert(begin.ns - begin.within <= Number(from) && Number(to) <= end + within, `${from} to ${to} in ${await shown.textContent()}`);
    }));
}
