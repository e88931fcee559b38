// Times as pages show them.

import assert from 'node:assert/strict';

/** Units of the times that the timeline shows, in ns. */
const UNITS = {ns: 1, µs: 1e3, ms: 1e6, s: 1e9};

/**
 * The time that some text is, and how far the truth may be from it by the digits that it has.
 * @param {string} text
 */
export function time(text) {
  const [number, unit] = text.split(' ');
  const scale = UNITS[/** @type {keyof typeof UNITS} */ (unit)];
  assert(scale, `${text} is no time`);
  return {ns: Number(number) * scale, within: scale / 10 ** (number.split('.')[1]?.length ?? 0)};
}

/**
 * Fails unless what the timeline says that it shows has this interval in it; returns how long that is, in ns.
 * @param {string} shown
 * @param {number} from
 * @param {number} to
 */
export function within(shown, from, to) {
  const [length, begin] = shown.split(' from ').map(time);
  const [error, end] = [begin.within + length.within, begin.ns + length.ns];
  assert(begin.ns - begin.within <= from && to <= end + error, `${from} to ${to} in ${shown}`);
  return length.ns;
}
