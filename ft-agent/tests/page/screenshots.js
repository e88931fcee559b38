// How a page looks: in the light and in the dark, at several widths, and printed.
// node screenshots.js PAGE DIR

import fs from 'node:fs';
import path from 'node:path';
import {close, visit} from './browser.js';

const [page, dir] = process.argv.slice(2);
if (!page || !dir) throw new Error('name a page, and a directory for its pictures');
fs.mkdirSync(dir, {recursive: true});
for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  for (const width of [390, 820, 1280, 1920]) {
    await visit(page, {colorScheme, viewport: {width, height: 1000}}, async shown => {
      await shown.screenshot({path: path.join(dir, `${colorScheme}-${width}.png`), fullPage: true});
    });
  }
}
await visit(page, {}, async shown => {
  await shown.pdf({path: path.join(dir, 'print.pdf'), format: 'A4'});
});
await close();
