// The page of a report: tables, links, marks, and how it looks where.

import assert from 'node:assert/strict';
import {after, test} from 'node:test';
import {close, given, visit} from './browser.js';

const file = given('FT_PAGE');
after(close);

/** Units of the durations that a page shows, in ns. */
const UNITS = {ns: 1, µs: 1e3, ms: 1e6, s: 1e9};

/**
 * The number that a cell shows, read as a person would; null for none.
 * @param {string} shown
 */
function read(shown) {
  const match = /^[<>]?(-?[\d,]+(?:\.\d+)?)\s?(ns|µs|ms|s|%|k|M|G)?\*?$/.exec(shown.trim());
  if (!match) return null;
  const unit = match[2] ?? '';
  const factor = {...UNITS, '%': 1, k: 1e3, M: 1e6, G: 1e9, '': 1}[unit] ?? NaN;
  return Number(match[1].replaceAll(',', '')) * factor;
}

test('the page opens from a file, says nothing and loads nothing', () =>
  visit(file, {}, async page => {
    assert(await page.locator('main > section').count() > 0);
    assert.match(await page.title(), /^Feather-Trace/);
  }));

test('columns are sorted by what they mean, and what is not known comes last', () =>
  visit(file, {}, async page => {
    const columns = await page.evaluate(() => {
      const sorted = [];
      for (const table of document.querySelectorAll('figure.table table')) {
        for (const heading of table.querySelectorAll('th[data-order]')) {
          for (const order of ['first', 'second']) {
            heading.querySelector('button')?.click();
            const column = [...table.querySelectorAll('thead th')].indexOf(heading);
            const cells = [...table.querySelectorAll('tbody tr')].map(row => row.children[column].textContent ?? '');
            const name = `${table.closest('section')?.id} ${heading.textContent}, ${order} click`;
            const sort = heading.getAttribute('aria-sort');
            sorted.push({name, sort, isNumber: heading.getAttribute('data-order') === 'number', cells});
          }
        }
      }
      return sorted;
    });
    assert(columns.length > 20, `${columns.length} columns`);
    for (const {name, sort, isNumber, cells} of columns) {
      const known = isNumber ? cells.filter(cell => cell !== '-') : cells;
      assert(cells.slice(0, known.length).every(cell => !isNumber || cell !== '-'), `${name}: ${cells}`);
      const sign = sort === 'descending' ? -1 : 1;
      for (let i = 1; i < known.length; i += 1) {
        const [a, b] = [known[i - 1], known[i]];
        const [left, right] = [read(a), read(b)];
        const order = isNumber && left !== null && right !== null
          ? left - right
          : isNumber ? 0 : a.localeCompare(b, 'en', {numeric: true});
        assert(sign * order <= 0, `${name}, ${sort}: ${a} before ${b}`);
      }
    }
  }));

test('a filter shows the rows that have its words, and how many these are', () =>
  visit(file, {}, async page => {
    const figure = page.locator('figure.table:has(input)').first();
    const first = (await figure.locator('tbody td').first().textContent())?.split(' ')[0] ?? '';
    await figure.locator('input').fill(first.toUpperCase());
    assert.match(await figure.locator('output').textContent() ?? '', /^[1-9]\d* of \d+ rows$/);
    await figure.locator('input').fill('no such thing');
    assert.equal(await figure.locator('tbody tr').filter({visible: true}).count(), 0);

    const filtered = await page.evaluate(() => Array.from(document.querySelectorAll('figure.table'), figure => {
      const [input, output] = [figure.querySelector('input'), figure.querySelector('output')];
      const rows = Array.from(figure.querySelectorAll('tbody tr'));
      const word = rows.at(-1)?.querySelector('td')?.textContent ?? '';
      const shown = (/** @type {string} */ text) => {
        if (!input || !output) return [];
        input.value = text;
        input.dispatchEvent(new Event('input'));
        const titles = (/** @type {Element} */ row) => Array.from(row.querySelectorAll('[title]'), e => e.getAttribute('title'));
        return rows.filter(row => row.checkVisibility()).map(row => `${row.textContent} ${titles(row)}`);
      };
      const some = input ? {word, rows: shown(word), said: output?.textContent} : null;
      return {all: rows.length, some, after: input ? shown('').length : rows.length};
    }));
    for (const {all, some, after} of filtered) {
      assert.equal(after, all);
      if (!some) continue;
      assert(some.rows.length > 0);
      for (const word of some.word.split(' ')) assert(some.rows.every(row => row.includes(word)), some.word);
      assert.equal(some.said, `${some.rows.length} of ${all} rows`);
    }
  }));

test('links lead somewhere', () =>
  visit(file, {}, async page => {
    const dead = await page.evaluate(() => {
      const targets = Array.from(document.querySelectorAll('a[href]'), a => a.getAttribute('href') ?? '');
      const inside = targets.filter(target => target.startsWith('#') && !target.startsWith('#at='));
      return inside.filter(target => !document.getElementById(target.slice(1)));
    });
    assert.deepEqual(dead, []);
    for (const link of (await page.locator('nav a').all()).slice(-3)) {
      await link.click();
      const target = page.locator(`[id="${(await link.getAttribute('href'))?.slice(1)}"]`);
      const top = await target.evaluate(element => element.getBoundingClientRect().top);
      const end = await page.evaluate(() => scrollY + innerHeight >= document.documentElement.scrollHeight - 1);
      assert(end || Math.abs(top) < 60, `${await link.textContent()}: ${top}`);
    }
  }));

test('a link into the timeline is as long as it says', () =>
  visit(file, {}, async page => {
    const links = await page.locator('a.at').evaluateAll(links => links.map(a => [a.getAttribute('href') ?? '', a.textContent ?? '']));
    for (const [href, shown] of links) {
      const [, from, to] = /^#at=(-?\d+)-(\d+)&tid=\d+(?:&lock=[0-9a-f]+)?$/.exec(href) ?? [];
      assert(to, href);
      const [length, said] = [Number(to) - Number(from), read(shown)];
      assert(said !== null && Math.abs(length - said) <= 0.006 * length + 0.5, `${href} is not ${shown}`);
    }
  }));

test('a row that is not exact has a star or a word that says why', () =>
  visit(file, {}, async page => {
    const rows = page.locator('tr.lower-bound, tr.disturbed, tr.censored');
    for (const row of await rows.all()) {
      const word = (await row.getAttribute('class'))?.replace('-', ' ') ?? '';
      const said = await row.locator(`abbr[title^="${word}: "]`).first().textContent();
      assert(said === '*' || said === word, `${said} of what is ${word}`);
    }
  }));

test('nothing is wider than the window, be it narrow', () =>
  visit(file, {}, async page => {
    for (const width of [360, 800, 1280, 1920]) {
      await page.setViewportSize({width, height: 900});
      const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert(excess <= 0, `${excess} pixels at ${width}`);
    }
  }));

test('what is wider than its place can be moved, says so, and keeps the names of its rows in view', () =>
  visit(file, {}, async page => {
    for (const width of [800, 1280]) {
      await page.setViewportSize({width, height: 900});
      const wide = await page.evaluate(() => Array.from(document.querySelectorAll('.scroll'), place => {
        const name = `${place.closest('section')?.id}: ${place.closest('figure')?.querySelector('figcaption')?.textContent}`;
        const excess = place.scrollWidth - place.clientWidth;
        place.scrollLeft = excess;
        const box = place.getBoundingClientRect();
        const [first, last] = [':first-child', ':last-child'].map(which =>
          place.querySelector(`tbody tr > ${which}`)?.getBoundingClientRect() ?? box);
        const shade = getComputedStyle(place).backgroundImage.includes('gradient');
        return {name, excess, shade, first: first.left - box.left, last: last.right - box.right};
      }).filter(place => place.excess > 0));
      for (const {name, shade, first, last} of wide) {
        assert(shade, name);
        assert(Math.abs(last) <= 1, `${name}: its last column ends ${last} pixels beyond it at ${width}`);
        if (width > 832) assert(Math.abs(first) <= 1, `${name}: its first column begins at ${first} at ${width}`);
      }
      const matrix = wide.find(({name}) => name.includes('Who waited for which lock'));
      if (width === 1280 && await page.locator('figure.matrix thead th').count() <= 16) assert.equal(matrix, undefined);
    }
  }));

test('what a section of the page says is linked to, not named by its command', () =>
  visit(file, {}, async page => {
    const named = await page.evaluate(() => Array.from(document.querySelectorAll('main code'), code => code.textContent ?? '')
      .filter(command => document.getElementById(/^ft-agent (\S+)$/.exec(command)?.[1] ?? ' ')));
    assert.deepEqual(named, []);
  }));

test('no two rows of a grouping are called the same', () =>
  visit(file, {}, async page => {
    const tables = await page.evaluate(() => Array.from(document.querySelectorAll('figure.table'), figure => {
      const heads = Array.from(figure.querySelectorAll('thead th'));
      const names = heads.map(th => !th.classList.contains('n') || ['pid', 'tid'].includes(th.textContent ?? ''));
      const rows = Array.from(figure.querySelectorAll('tbody tr'), row =>
        Array.from(row.children).filter((_, i) => names[i]).map(cell => cell.textContent).join(' | '));
      return {title: `${figure.closest('section')?.id}: ${figure.querySelector('figcaption')?.textContent}`, rows};
    }).filter(({title}) => /: By |Hold times$|Tails|Balance|Where the|Threads that/.test(title)));
    for (const {title, rows} of tables) assert.deepEqual(rows.filter((row, i) => rows.indexOf(row) !== i), [], title);
  }));

test('text can be read in the light and in the dark', async () => {
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    await visit(file, {colorScheme}, async page => {
      const contrasts = await page.evaluate(() => {
        /** @param {string} color @returns {number[]} */
        const parts = color => (color.match(/[\d.]+/g) ?? []).map(Number);
        // https://www.w3.org/TR/WCAG21/#dfn-relative-luminance
        /** @param {number[]} rgb */
        const luminance = rgb => {
          const [r, g, b] = rgb.map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        /** @param {Element | null} element @returns {number[]} */
        const paper = element => {
          if (!element) return [255, 255, 255];
          const color = parts(getComputedStyle(element).backgroundColor);
          return color[3] === 0 ? paper(element.parentElement) : color;
        };
        return ['p', 'td', 'th button', 'a', 'dt', 'h2 small', 'nav a', '.warning strong', 'abbr'].flatMap(selector => {
          const element = document.querySelector(`main ${selector}, body > ${selector}`);
          if (!element) return [];
          const [a, b] = [parts(getComputedStyle(element).color), paper(element)].map(luminance);
          return [{selector, contrast: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)}];
        });
      });
      assert(contrasts.length > 5);
      for (const {selector, contrast} of contrasts) assert(contrast >= 4.5, `${colorScheme} ${selector}: ${contrast}`);
    });
  }
});

test('without its script the page says the same', () =>
  visit(file, {javaScriptEnabled: false}, async page => {
    /** @param {import('playwright-core').Page} page */
    const said = page => page.locator('main').evaluate(main => {
      main.querySelector('#timeline')?.remove();
      main.querySelectorAll('select').forEach(select => select.remove());
      return /** @type {HTMLElement} */ (main).innerText;
    });
    assert.equal(await page.locator('input, select').filter({visible: true}).count(), 0);
    const text = await said(page);
    await visit(file, {}, async scripted => {
      const same = await said(scripted);
      /** @param {string} all */
      const words = all => all.split(/\s+/).filter(Boolean);
      assert.deepEqual(words(text), words(same));
    });
  }));

test('on paper there is nothing to click', () =>
  visit(file, {}, async page => {
    await page.emulateMedia({media: 'print'});
    assert.equal(await page.locator('nav, input, select').filter({visible: true}).count(), 0);
    assert((await page.pdf({format: 'A4'})).length > 10_000);
  }));

/**
 * The rows of the file that a link holds, the titles first.
 * @param {string} href
 */
const file_of = href => decodeURIComponent(href.slice(href.indexOf(',') + 1)).trimEnd().split('\n').map(l => l.split(','));

test('a figure is of what is chosen, and its files have all that its section counts', () =>
  visit(file, {}, async page => {
    const figures = page.locator('figure.plot:has(select)');
    let chosen = 0;
    for (const figure of (await figures.all()).slice(0, 3)) {
      const names = await figure.locator('option').allTextContents();
      assert.equal(names[0], 'all');
      assert.equal(new Set(names).size, names.length, `${names}`);
      await figure.locator('select').selectOption({index: names.length - 1});
      const shown = figure.locator('.drawing').filter({visible: true});
      assert.equal(await shown.count(), 1);
      assert.equal(await shown.locator('a').getAttribute('download'), `${await figure.getAttribute('id')}-${names.length - 1}.csv`);
      chosen += 1;
    }
    assert.equal(chosen > 0, await figures.count() > 0);
    const sums = await page.evaluate(() => {
      const files = Array.from(document.querySelectorAll('figure.plot'), figure => ({
        id: figure.id, files: Array.from(figure.querySelectorAll('a.csv'), a => a.getAttribute('href') ?? '')}));
      const table = Array.from(document.querySelectorAll('#locks tfoot td'), td => td.getAttribute('data-v'));
      return {files, holds: Number(table[2] ?? NaN)};
    });
    for (const {id, files} of sums.files.filter(({id}) => id.startsWith('locks'))) {
      const counted = files.map(href => {
        const [titles, ...rows] = file_of(href);
        const column = titles.indexOf('holds');
        assert(column >= 0, `${id}: ${titles}`);
        return rows.reduce((sum, row) => sum + Number(row[column]), 0);
      });
      // The first is of all; of the others there may be more than are drawn.
      const [all, ...each] = counted;
      if (!Number.isNaN(sums.holds)) assert.equal(all, sums.holds, id);
      assert(each.reduce((a, b) => a + b, 0) <= all, `${id}: ${counted}`);
    }
  }));

test('a figure tells what lies under the pointer, as its file has it', () =>
  visit(file, {}, async page => {
    const drawing = page.locator('#time-figure-1 .drawing');
    if (await drawing.count() === 0) return;
    const box = await drawing.locator('svg').boundingBox();
    assert(box);
    const [titles, ...rows] = file_of(await drawing.locator('a').getAttribute('href') ?? '');
    const height = await drawing.locator('svg').evaluate(svg => Number(svg.getAttribute('height')));
    await drawing.locator('svg').hover({position: {x: box.width / 2, y: box.height * (26 + 9) / height}});
    const said = await drawing.locator('output').textContent();
    assert(said && said.startsWith(`${titles[0]} ${rows[0][0]}, tid ${rows[0][1]}, running `), `${said} is not ${rows[0]}`);
    const parts = said.split(', ').slice(2).map(part => read(part.slice(part.indexOf(' ') + 1)));
    for (const [i, ns] of rows[0].slice(2).map(Number).entries()) {
      assert(Math.abs((parts[i] ?? NaN) - ns) <= 0.006 * ns + 0.5, `${said} is not ${rows[0]}`);
    }
    await page.mouse.move(0, 0);
    assert.equal(await drawing.locator('output').textContent(), '');
  }));

test('each axis of a figure says what it is', () =>
  visit(file, {}, async page => {
    const drawings = await page.locator('.drawing svg').evaluateAll(drawings => drawings.map(svg => {
      const texts = Array.from(svg.querySelectorAll('text'), text => ({said: text.textContent?.trim() ?? '', y: Number(text.getAttribute('y'))}));
      const height = Number(svg.getAttribute('height'));
      return {
        name: svg.closest('figure')?.id ?? '',
        below: texts.filter(({said, y}) => y > height - 24 && !/\d/.test(said)).map(({said}) => said),
        hasShares: texts.some(({said}) => said === '100 %'),
        said: texts.map(({said}) => said),
      };
    }));
    for (const {name, below, hasShares, said} of drawings) {
      assert.equal(below.length, 1, `${name}: ${said}`);
      if (hasShares) assert(said.includes('not longer'), `${name}: ${said}`);
    }
  }));

const counts = process.env.FT_TABLES;
test('tables have the sums that DuckDB makes of the trace', {skip: counts ? false : 'FT_PYTHON is not set'}, () =>
  visit(file, {}, async page => {
    /** @type {Record<string, Record<string, {columns: string[], rows: number[][]}>>} */
    const expected = JSON.parse(counts ?? '');
    let compared = 0;
    for (const [section, tables] of Object.entries(expected)) {
      for (const [title, {columns, rows}] of Object.entries(tables)) {
        const found = await page.evaluate(({section, title, columns}) => {
          const figures = Array.from(document.querySelectorAll(`#${section} figure.table`));
          const figure = figures.find(f => f.querySelector('figcaption')?.textContent?.startsWith(title));
          if (!figure) return null;
          const titles = Array.from(figure.querySelectorAll('th'), th => th.textContent);
          const value = (/** @type {Element} */ row, /** @type {string} */ column) =>
            Number(row.children[titles.indexOf(column)].getAttribute('data-v'));
          const rows = Array.from(figure.querySelectorAll('tbody tr'), row => columns.map(c => value(row, c)));
          const omitted = figure.querySelector('.omitted')?.textContent?.match(/[\d,]+/)?.[0] ?? '0';
          return {rows, omitted: Number(omitted.replaceAll(',', ''))};
        }, {section, title, columns});
        const name = `${section}: ${title}`;
        assert.equal(found !== null, rows.length > 0, name);
        if (!found) continue;
        assert.equal(found.rows.length + found.omitted, rows.length, name);
        const left = rows.map(String);
        for (const row of found.rows) {
          const at = left.indexOf(String(row));
          assert(at >= 0, `${name}: ${row} is none of ${left.slice(0, 40).join('; ')}`);
          left.splice(at, 1);
        }
        compared += found.rows.length;
      }
    }
    assert(compared > 0);
    console.log(`measured ${compared} rows of tables are DuckDB’s`);
  }));
