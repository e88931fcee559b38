// How a page looks: in the light and in the dark, at several widths, and printed; and its timeline at one of the places
// that it offers, the first if none is named.
// node screenshots.js PAGE DIR [PLACE]

import fs from 'node:fs';
import path from 'node:path';
import {close, visit} from './browser.js';

const [page, dir, place = '0'] = process.argv.slice(2);
if (!page || !dir) throw new Error('name a page, and a directory for its pictures');
fs.mkdirSync(dir, {recursive: true});
for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  for (const width of [390, 820, 1280, 1920]) {
    await visit(page, {colorScheme, viewport: {width, height: 1000}}, async shown => {
      await shown.screenshot({path: path.join(dir, `${colorScheme}-${width}.png`), fullPage: true});
    });
  }
}
await visit(page, {viewport: {width: 1280, height: 1000}}, async shown => {
  await shown.locator('#timeline[data-ready=true]').waitFor();
  await shown.locator('#timeline .tl-incidents').selectOption(place);
  await shown.locator('#timeline .tl-measure .sum').waitFor();
  await shown.locator('#timeline .tl-frame').screenshot({path: path.join(dir, 'timeline.png')});
});
await visit(page, {}, async shown => {
  await shown.pdf({path: path.join(dir, 'print.pdf'), format: 'A4'});
});
await close();
