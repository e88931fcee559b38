// A page in headless Chromium, which must stay silent and load nothing.

import assert from 'node:assert/strict';
import {pathToFileURL} from 'node:url';
import {chromium} from 'playwright-core';

/** @typedef {import('playwright-core').BrowserContextOptions} Options */
/** @typedef {import('playwright-core').Page} Page */

const browser = await chromium.launch({
  executablePath: process.env.FT_CHROMIUM ?? '/usr/bin/chromium',
  // The machine may be busy.
  timeout: 120_000,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});

/** Ends the browser; the last thing of every file of tests. */
export function close() {
  return browser.close();
}

/**
 * The value of an environment variable that the test's caller sets.
 * @param {string} name
 */
export function given(name) {
  const value = process.env[name];
  assert(value, `${name} is not set; cargo test -p ft-tests --test page sets it`);
  return value;
}

/**
 * Opens a page, shows it to `look`, and fails if it complained or asked for anything meanwhile, but for the files to which
 * `look` says that it has gone.
 * @param {string} file
 * @param {Options} options
 * @param {(page: Page) => Promise<void | string[]>} look
 * @param {(page: Page) => Promise<void>} [before]  What has to be done before it is opened.
 */
export async function visit(file, options, look, before) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, offline: true, ...options});
  try {
    const page = await context.newPage();
    // The machine may be busy; what has not come by then never will.
    page.setDefaultTimeout(120_000);
    /** @type {string[]} */
    const complaints = [];
    /** @type {string[]} */
    const requests = [];
    page.on('console', message => complaints.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', error => complaints.push(String(error.stack)));
    page.on('dialog', dialog => complaints.push(`dialog: ${dialog.message()}`));
    context.on('request', request => requests.push(request.url()));
    const url = pathToFileURL(file).href;
    await before?.(page);
    await page.goto(url);
    const files = await look(page) ?? [];
    assert.deepEqual(complaints, []);
    const known = [file, ...files].map(file => pathToFileURL(file).href);
    assert.deepEqual(requests.filter(request => !known.includes(request.split('#')[0])), []);
  } finally {
    await context.close();
  }
}
