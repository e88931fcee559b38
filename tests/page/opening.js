// How soon a page answers: seconds from its opening, by its own clock, until its timeline is ready, has zoomed, and has said
// what was clicked; medians of five openings, each in a context of its own. `cargo bench … -- scale` calls it.
// node opening.js PAGE

import {close, visit} from './browser.js';

const OPENINGS = 5;

const [file] = process.argv.slice(2);
if (!file) throw new Error('name a page');

/**
 * The page's clock, which begins when it is asked for, when all that was drawn before is on the screen.
 * @param {import('playwright-core').Page} page
 */
const seconds = page => page.evaluate(() => new Promise(resolve =>
  requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() / 1000)))));

/** @type {number[][]} */
const openings = [];
for (let i = 0; i < OPENINGS; i += 1) {
  await visit(file, {}, async page => {
    const timeline = page.locator('#timeline');
    await page.locator('#timeline[data-ready=true]').waitFor();
    const ready = await seconds(page);
    const whole = await timeline.locator('.tl-span').textContent();
    await timeline.locator('.tl-in').click();
    await page.waitForFunction(whole => document.querySelector('#timeline .tl-span')?.textContent !== whole, whole);
    const zoomed = await seconds(page);
    // Of the first place worth a look, every detail has to be unpacked.
    await timeline.locator('.tl-incidents').selectOption('0');
    await timeline.locator('.tl-measure .sum').waitFor();
    const box = await timeline.locator('.tl-stage').boundingBox();
    if (!box) throw new Error('the timeline has no rows');
    await page.mouse.click(box.x + 150 + (box.width - 150) / 2, box.y + 32);
    await timeline.locator('.tl-near h4').waitFor();
    openings.push([ready, zoomed, await seconds(page)]);
  });
}
await close();
const median = (/** @type {number[]} */ of) => of.sort((a, b) => a - b)[Math.floor(of.length / 2)];
console.log([0, 1, 2].map(step => median(openings.map(opening => opening[step])).toFixed(3)).join(' '));
