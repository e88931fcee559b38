// The timeline of a page: what the user does, and what is said then.

import assert from 'node:assert/strict';
import {after, test} from 'node:test';
import {readWindow, unpack} from '../../ft-report/src/timeline/script/codec.js';
import {clamp, link} from '../../ft-report/src/timeline/script/view.js';
import {close, given, visit} from './browser.js';
import {keepShapes, shapes} from './canvas.js';

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('../../ft-report/src/timeline/script/types.js').Head} Head */

const file = given('FT_PAGE');
after(close);

/**
 * Opens the page, and waits for the timeline.
 * @param {(page: Page, head: Head) => Promise<void>} look
 * @param {import('./browser.js').Options} [options]
 * @param {(page: Page) => Promise<void>} [before]
 */
const open = (look, options = {}, before = async (/** @type {Page} */ _) => {}) =>
  visit(file, options, async page => {
    await page.locator('#timeline[data-ready=true]').waitFor();
    const head = JSON.parse(await page.locator('#timeline .tl-head').textContent() ?? '');
    await look(page, head);
  }, before);

/** @param {Page} page @param {string} name */
const part = (page, name) => page.locator(`#timeline .tl-${name}`);

/** @param {Page} page */
const inView = async page => (await part(page, 'span').textContent()) ?? '';

/**
 * Goes to a link, and waits for what it means.
 * @param {Page} page
 * @param {string} hash
 */
async function follow(page, hash) {
  // What was said of the place before may be the same, word by word.
  await part(page, 'measure').evaluate(element => { element.textContent = ''; });
  await page.evaluate(hash => { location.hash = hash; }, hash);
  await page.waitForFunction(() => {
    const text = document.querySelector('#timeline .tl-measure')?.textContent ?? '';
    return text !== '' && !text.includes('Unpacking');
  });
}

/**
 * The parts that the ruler tells, in ns, and their sum.
 * @param {Page} page
 */
async function measured(page) {
  const rows = await part(page, 'measure').locator('tr:has(.n)').evaluateAll(rows => rows
    .filter(row => !row.closest('.tl-why'))
    .map(row => /** @type {[string, number]} */ ([
      row.children[0].textContent ?? '',
      Number(row.children[1].textContent?.replace(/[^\d]/g, '')),
    ])));
  const {sum = NaN, ...parts} = Object.fromEntries(rows);
  return {parts, sum};
}

/**
 * What was clicked, by the names of the facts.
 * @param {Page} page
 * @returns {Promise<Record<string, string>>}
 */
const chosen = page => part(page, 'chosen').locator('dl').evaluate(list =>
  Object.fromEntries(Array.from(list.querySelectorAll('dt'), dt => [dt.textContent, dt.nextElementSibling?.textContent ?? ''])));

/** @type {{time: [number, string, number][], holds: Row[], waits: Row[], events: [string, number][]}} */
const tables = JSON.parse(process.env.FT_TIMELINE ?? 'null');
/** @typedef {[tid: number, ts: number, dur: number, lock: string, mark: string]} Row */
const withTables = {skip: tables ? false : 'FT_PYTHON is not set'};

/** What the page calls the parts of the table. */
const WORDS = /** @type {Record<string, string>} */ ({
  dispatch: 'woken and waiting', hardirq: 'hardware interrupt', vector: 'interrupt vector',
});

test('the ruler over the whole trace tells of each thread what its rows of thread_time say', withTables, () =>
  open(async (page, head) => {
    const tids = new Set(tables.time.map(([tid]) => tid));
    for (const tid of tids) {
      const rows = tables.time.filter(row => row[0] === tid);
      await follow(page, `#at=${head.offset}-${head.offset + head.span}&tid=${tid}`);
      const {parts, sum} = await measured(page);
      const blocked = (parts['waiting for a lock'] ?? 0) + (parts.blocked ?? 0);
      const {['waiting for a lock']: _, ['not there, or not seen']: away = 0, ...rest} = /** @type {Record<string, number>} */ ({...parts, blocked});
      const found = Object.fromEntries(Object.entries(rest).filter(([, ns]) => ns > 0));
      assert.deepEqual(found, Object.fromEntries(rows.map(([, part, ns]) => [WORDS[part] ?? part, ns])), `thread ${tid}`);
      assert.equal(sum, head.span);
      assert.equal(away + rows.reduce((sum, [,, ns]) => sum + ns, 0), head.span);
      assert.match(await part(page, 'measure').textContent() ?? '', /Exact/);
    }
  }));

test('a link shows the hold or the wait that it names, as the table has it', withTables, () =>
  open(async (page, head) => {
    for (const [table, word] of /** @type {const} */ ([['holds', 'held'], ['waits', 'waited for']])) {
      for (const [tid, ts, dur, lock, mark] of tables[table].slice(0, 4)) {
        const from = Number(BigInt(ts) - BigInt(head.begin)) + head.offset;
        const incident = head.incidents.find(i => i.from + head.offset === from && i.to - i.from === dur && i.tid === tid);
        assert(incident?.lock, `${table} ${ts} is no incident`);
        await follow(page, `#at=${from}-${from + dur}&tid=${tid}&lock=${incident.lock}`);
        const facts = await chosen(page);
        assert(facts.what.startsWith(word), facts.what);
        assert(facts.where === `lock ${lock}` || lock.startsWith('0x'), `${facts.where}, not ${lock}`);
        assert(facts.who.endsWith(` ${tid}`), facts.who);
        assert.equal(Number(facts.long.split('=')[1].replace(/[^\d]/g, '')), dur);
        assert(facts.from.includes(`(${ts} ns`) || ts > 2 ** 53, facts.from);
        assert(facts['how sure'].startsWith(mark), facts['how sure']);
        const {parts, sum} = await measured(page);
        assert.equal(sum, dur);
        assert.equal(Object.values(parts).reduce((sum, ns) => sum + ns, 0), dur);
      }
    }
  }));

test('links of the tables lead to a place in the timeline', () =>
  open(async page => {
    const whole = await inView(page);
    const links = await page.locator('main a[href^="#at="]:not(#timeline a)').all();
    for (const link of [...links.slice(0, 3), ...links.slice(0, 1), ...links.slice(0, 1)]) {
      await link.click();
      await page.waitForFunction(whole => document.querySelector('#timeline .tl-span')?.textContent !== whole, whole);
      const top = await page.locator('#timeline').evaluate(section => section.getBoundingClientRect().top);
      assert(top > -5 && top < 400, `${top}`);
      await part(page, 'whole').click();
      await page.waitForFunction(whole => document.querySelector('#timeline .tl-span')?.textContent === whole, whole);
    }
  }));

test('each kind of event is counted as the table has it', withTables, () =>
  open(async (page, head) => {
    const counts = Object.fromEntries(head.events.map(({name, count}) => [name, count]));
    for (const [event, count] of tables.events) assert.equal(counts[event], count, event);
    // When it is opened all that is in view is all there is, where the page has all of the trace.
    if (head.windows.length !== 1 || head.windows[0].to < head.span) return;
    await page.waitForFunction(() => Array.from(document.querySelectorAll('#timeline .tl-kinds tr')).every(row =>
      row.children[2].textContent === row.children[3].textContent || row.children[3].textContent === '0'));
  }));

test('keys, wheel and drags move and zoom, down to 100 ns and back to the whole', () =>
  open(async (page, head) => {
    const whole = await inView(page);
    await part(page, 'stage').focus();
    for (let i = 0; i < 60; i += 1) await page.keyboard.press('w');
    await page.waitForFunction(() => document.querySelector('#timeline .tl-span')?.textContent?.startsWith('100 ns '));
    const close = await inView(page);
    await page.keyboard.press('d');
    await page.waitForFunction(close => document.querySelector('#timeline .tl-span')?.textContent !== close, close);
    assert.match(await inView(page), /^100 ns /);
    await page.keyboard.press('0');
    await page.waitForFunction(whole => document.querySelector('#timeline .tl-span')?.textContent === whole, whole);

    const box = await part(page, 'stage').boundingBox();
    assert(box);
    await page.mouse.move(box.x + box.width / 2, box.y + 30);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -100);
    await page.keyboard.up('Control');
    await page.waitForFunction(whole => document.querySelector('#timeline .tl-span')?.textContent !== whole, whole);
    const zoomed = await inView(page);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2 + 80, box.y + 32, {steps: 4});
    await page.mouse.up();
    await page.waitForFunction(zoomed => document.querySelector('#timeline .tl-span')?.textContent !== zoomed, zoomed);
    assert.equal((await inView(page)).split(' from ')[0], zoomed.split(' from ')[0], 'a drag keeps the length');
    assert(head.span > 0);
  }));

test('a drag on the scale of time measures, to parts that sum to it', () =>
  open(async (page, head) => {
    if (head.threads.length === 0) return;
    await part(page, 'overview').scrollIntoViewIfNeeded();
    await part(page, 'axis').evaluate(axis => axis.scrollIntoView({block: 'center'}));
    const box = await part(page, 'axis').boundingBox();
    assert(box);
    await page.mouse.move(box.x + 300, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + 700, box.y + 10, {steps: 5});
    await page.mouse.up();
    await part(page, 'measure').locator('.sum').waitFor();
    const {parts, sum} = await measured(page);
    assert.equal(Object.values(parts).reduce((sum, ns) => sum + ns, 0), sum);
    const expected = 400 / (box.width - 150) * head.span;
    assert(Math.abs(sum - expected) < expected / 50, `${sum}, not ${expected}`);
    await page.keyboard.press('Escape');
  }));

test('no time of the scale is cut at its end', () =>
  visit(file, {}, async page => {
    await part(page, 'frame').waitFor();
    await page.locator('#timeline[data-ready=true]').waitFor();
    await part(page, 'overview').scrollIntoViewIfNeeded();
    await part(page, 'stage').focus();
    // Each time other numbers are at the edge.
    for (let i = 0; i < 12; i += 1) {
      await page.keyboard.press('+');
      await page.evaluate(() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    }
    const ends = await page.evaluate(() => /** @type {{ends: [text: string, end: number, width: number][]}} */ (/** @type {unknown} */ (window)).ends);
    assert(ends.length > 20, `${ends.length} times`);
    for (const [text, end, width] of ends) assert(end <= width, `${text} ends at ${end} of ${width}`);
  }, page => page.addInitScript(() => {
    /** @type {[text: string, end: number, width: number][]} */
    const ends = [];
    Object.assign(window, {ends});
    const own = CanvasRenderingContext2D.prototype, {fillText} = own;
    own.fillText = function (text, x, y, room) {
      if (this.canvas.classList.contains('tl-axis')) ends.push([text, x + this.measureText(text).width, this.canvas.clientWidth]);
      return room === undefined ? fillText.call(this, text, x, y) : fillText.call(this, text, x, y, room);
    };
  })));

test('a click says what is there, and lists the events beside it', () =>
  open(async (page, head) => {
    const incident = head.incidents[0];
    if (!incident) return;
    await part(page, 'incidents').selectOption('0');
    await part(page, 'measure').locator('.sum').waitFor();
    const box = await part(page, 'stage').boundingBox();
    assert(box);
    // Behind the heading, in the first row in focus.
    await page.mouse.click(box.x + 150 + (box.width - 150) / 2, box.y + 32);
    const facts = await chosen(page);
    assert(facts.what && facts.from && facts['how sure'], JSON.stringify(facts));
    await part(page, 'near').locator('h4').waitFor();
    await part(page, 'near').locator('input').check();
    const times = await part(page, 'near').locator('td:first-child').allTextContents();
    const side = times.map(time => time.startsWith('+'));
    assert.deepEqual(side, [...side].sort(), 'those before come first');
  }));

test('the search finds threads, locks and events, and goes there', () =>
  open(async (page, head) => {
    const input = part(page, 'search');
    await input.fill('no such thing');
    assert.equal(await part(page, 'status').textContent(), 'nothing of that name');
    const thread = head.threads.find(thread => thread.tid !== 0);
    if (!thread) return;
    await input.fill(String(thread.tid));
    const names = await part(page, 'found').locator('button').allTextContents();
    assert(names.some(name => name === `thread ${thread.name} ${thread.tid}`), `${names}`);
    await input.press('Enter');
    assert.equal((await chosen(page)).where.length > 0, true);
    const event = head.events.find(({quiet, count}) => !quiet && count > 0);
    if (!event) return;
    await input.fill(event.name);
    await part(page, 'found').locator('button', {hasText: `event ${event.name} (`}).first().click();
    await page.waitForFunction(name => document.querySelector('#timeline .tl-near')?.textContent?.includes(name)
      || document.querySelector('#timeline .tl-status')?.textContent?.startsWith('no later'), event.name);
  }));

test('each kind of event has one line, its color, name and buttons together', () =>
  open(async (page, head) => {
    const rows = part(page, 'kinds').locator('tr');
    const heights = await rows.evaluateAll(rows => rows.map(row => [
      row.clientHeight,
      Math.max(...Array.from(row.querySelectorAll('.tl-kind'), kind => kind.clientHeight)),
      parseFloat(getComputedStyle(row).fontSize),
    ]));
    assert.equal(heights.length, head.events.length);
    for (const [row, kind, font] of heights) assert(kind < 2 * font + 8 && row < 2 * font + 14, `${row}, ${kind} of ${font}`);
  }));

test('a kind of event is hidden and marked', () =>
  open(async page => {
    const kind = part(page, 'kinds').locator('tr').first();
    if (await kind.count() === 0) return;
    await kind.locator('input').uncheck();
    assert.equal(await part(page, 'kinds').locator('tr').first().locator('input').isChecked(), false);
    await part(page, 'kinds').locator('.tl-kind').first().click();
    assert.equal(await part(page, 'kinds').locator('.tl-kind').first().getAttribute('aria-pressed'), 'true');
  }));

test('a kind that is pressed has a mark at every scale where one of its events is', () =>
  open(async (page, head) => {
    if (head.windows.length === 0) return;
    const chunks = await part(page, 'chunk').allTextContents();
    const {threads} = readWindow(await unpack(chunks[1]), head, head.windows[0]);
    // The one in the middle of those of which there are most.
    const all = threads.flatMap(({events}) => Array.from(events.start, (t, i) => ({t, kind: events.a[i]}))).sort((a, b) => a.t - b.t);
    const kind = head.events.reduce((most, {count}, i) => count > head.events[most].count ? i : most, 0);
    const of = all.filter(event => event.kind === kind), t = of[Math.floor(of.length / 2)]?.t;
    if (t === undefined) return;
    const row = part(page, 'kinds').locator('tr').nth(kind);
    await row.locator('.tl-kind').click();
    const [color, width] = await row.locator('.tl-dot').evaluate(dot => {
      const hex = (/** @type {string} */ n) => Number(n).toString(16).padStart(2, '0');
      return /** @type {const} */ ([`#${(getComputedStyle(dot).backgroundColor.match(/\d+/g) ?? []).map(hex).join('')}`, document.querySelector('.tl-stage')?.clientWidth ?? 0]);
    });
    for (let length = head.span; length > 500; length /= 3) {
      // A link shows more than what it names.
      const at = {from: Math.round(Math.max(t - length / 4, 0)), to: Math.round(Math.min(t + length / 4, head.span))};
      await follow(page, link({from: at.from + head.offset, to: at.to + head.offset}));
      const margin = Math.max((at.to - at.from) * 0.3, 50), view = clamp({from: at.from - margin, to: at.to + margin}, head.span);
      const x = 150 + (t - view.from) / (view.to - view.from) * (width - 150);
      const marks = (await shapes(page)).filter(shape => shape.what === 'rect' && shape.color === color && shape.path[0][2] === 0 && shape.path[0][3] === 1);
      assert(marks.some(({path: [[, at]]}) => Math.abs(at - x) <= 2), `${head.events[kind].name} at ${t} in ${JSON.stringify(view)}: ${marks.length} marks, none at ${x}`);
      assert.match(await row.locator('td').nth(2).textContent() ?? '', /^(≈ )?[\d,]+$/);
    }
  }, {}, async page => { await keepShapes(page); }));

test('the legend names all that is drawn, gaps that threads saw, too', () =>
  open(async (page, head) => {
    const names = await part(page, 'legend').locator('span').allTextContents();
    assert.equal(names.length, head.states.length + 2 + (head.gaps ? 1 : 0), `${names}`);
    assert.equal(names.some(name => name.includes('gap that a thread saw')), head.gaps);
    assert.equal(names.some(name => name.includes('execution trace')), head.runs);
    const colors = await part(page, 'legend').locator('.tl-dot').evaluateAll(dots => dots.map(dot => getComputedStyle(dot).backgroundColor));
    assert(colors.every(color => color !== 'rgba(0, 0, 0, 0)'), `${colors}`);
  }));

test('something is drawn in the light and in the dark', async () => {
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    await open(async page => {
      const colors = await part(page, 'rows').evaluate(canvas => {
        const {width, height} = /** @type {HTMLCanvasElement} */ (canvas);
        const data = /** @type {HTMLCanvasElement} */ (canvas).getContext('2d')?.getImageData(0, 0, width, height).data ?? [];
        const seen = new Set();
        for (let i = 0; i < data.length; i += 4) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
        return seen.size;
      });
      assert(colors > 4, `${colors} colours`);
    }, {colorScheme});
  }
});
