// Flame graphs of a page: boxes are as wide as their shares, and each can be had as wide as the whole.

import assert from 'node:assert/strict';
import {after, test} from 'node:test';
import {close, given, visit} from './browser.js';

const file = given('FT_PAGE');
after(close);

/** Units of the durations that a page shows, in ns. */
const UNITS = {ns: 1, µs: 1e3, ms: 1e6, s: 1e9};

test('a box is as wide as its share, and lies in that of its caller', () =>
  visit(file, {}, async page => {
    const figures = await page.evaluate(() => Array.from(document.querySelectorAll('figure.flame'), figure => {
      const width = (/** @type {Element} */ element) => element.getBoundingClientRect().width;
      const frames = Array.from(figure.querySelectorAll('.frame'), frame => ({
        title: frame.querySelector('button')?.title ?? '',
        part: width(frame) / width(/** @type {Element} */ (figure.querySelector('.frame'))),
        beyond: Array.from(frame.querySelectorAll(':scope > .callees > .frame'), width).reduce((a, b) => a + b, 0) - width(frame),
      }));
      const csv = decodeURIComponent(figure.querySelector('a.csv')?.getAttribute('href') ?? '');
      return {title: figure.querySelector('figcaption')?.textContent ?? '', frames, csv};
    }));
    const titles = figures.map(figure => figure.title);
    for (const title of [/^Time off the CPU/, /^Time in which locks/, /from holders/, /^Time on a CPU/]) {
      assert(titles.some(shown => title.test(shown)), `${title} in ${titles}`);
    }
    for (const {title, frames, csv} of figures) {
      for (const frame of frames) {
        const [, share] = /, [<>]?([\d.]+) %$/.exec(frame.title) ?? [];
        // As it is written, and a pixel.
        assert(Math.abs(Number(share) / 100 - frame.part) < 0.003, `${title}: ${frame.title}: ${frame.part}`);
        assert(frame.beyond < 1, `${title}: what ${frame.title} calls is ${frame.beyond} wider`);
      }
      const sum = csv.trimEnd().split('\n').slice(1).map(line => Number(line.slice(line.lastIndexOf(',') + 1)));
      const [, whole, unit] = /^all: ([\d.]+) (\S+),/.exec(frames[0].title) ?? [];
      const told = Number(whole) * (UNITS[/** @type {keyof typeof UNITS} */ (unit)] ?? NaN);
      const ns = sum.reduce((a, b) => a + b, 0);
      assert(Math.abs(ns / told - 1) < 0.006, `${title}: ${ns} in its file, ${frames[0].title}`);
    }
  }));

test('a click makes a box as wide as the whole, and one on the whole undoes it', () =>
  visit(file, {}, async page => {
    for (const figure of await page.locator('figure.flame').all()) {
      const boxes = figure.locator('.frame > button');
      const width = async (/** @type {number} */ i) => (await boxes.nth(i).boundingBox())?.width ?? 0;
      const all = await boxes.count();
      const last = all - 1;
      const [whole, before] = [await width(0), await width(last)];
      await boxes.nth(last).focus();
      await page.keyboard.press('Enter');
      assert(Math.abs(await width(last) - whole) < 1, `${await width(last)} of ${whole}`);
      await boxes.nth(0).click();
      assert(Math.abs(await width(last) - before) < 1);
      assert.equal(await boxes.filter({visible: true}).count(), all);
    }
  }));
