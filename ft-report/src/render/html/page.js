// Lets tables be sorted and filtered, and figures tell what lies under the pointer. The page says the same without it.

/**
 * The value that a row is sorted by.
 * @param {HTMLTableRowElement} row
 * @param {number} column
 * @param {boolean} isNumber
 * @returns {number | string | null} null where nothing is known
 */
function sortKey(row, column, isNumber) {
  const cell = row.cells[column];
  if (!isNumber) return cell.textContent;
  return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
}

/**
 * Sorts the rows by a column: numbers with the largest first, then the other way round. What is not known comes last.
 * @param {HTMLTableElement} table
 * @param {HTMLTableCellElement} heading
 */
function sort(table, heading) {
  const isNumber = heading.dataset.order === 'number';
  const before = heading.getAttribute('aria-sort');
  const descending = before === null ? isNumber : before === 'ascending';
  for (const other of table.querySelectorAll('th')) other.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
  const body = table.tBodies[0];
  const keyed = Array.from(body.rows, row => ({row, key: sortKey(row, heading.cellIndex, isNumber)}));
  const sign = descending ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
    if (typeof a.key === 'string') return sign * a.key.localeCompare(String(b.key), 'en', {numeric: true});
    return sign * (a.key - Number(b.key));
  });
  body.append(...keyed.map(({row}) => row));
}

/**
 * Shows the rows that have all words of a text in them, be it in what their names are short for.
 * @param {HTMLTableElement} table
 * @param {string} text
 * @param {HTMLOutputElement} output is told how many these are
 */
function filter(table, text, output) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  const rows = table.tBodies[0].rows;
  for (const row of rows) {
    const titles = Array.from(row.querySelectorAll('[title]'), e => e.getAttribute('title'));
    const all = `${Array.from(row.cells, cell => cell.textContent).join(' ')} ${titles.join(' ')}`.toLowerCase();
    row.hidden = !words.every(word => all.includes(word));
    if (!row.hidden) shown += 1;
  }
  output.value = words.length ? `${shown} of ${rows.length} rows` : '';
}

/**
 * The rows of a file of comma-separated values that a link holds, the titles first.
 * @param {string} href
 * @returns {string[][]}
 */
function parse(href) {
  const text = decodeURIComponent(href.slice(href.indexOf(',') + 1));
  const unquoted = (/** @type {string} */ cell) => cell.replace(/^"|"$/g, '').replaceAll('""', '"');
  return text.trimEnd().split('\n').map(line => line.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/).map(unquoted));
}

/**
 * A duration with three digits, as the rest of the page has it.
 * @param {number} ns
 */
function duration(ns) {
  const [unit, per] = ns < 999.5 ? ['ns', 1] : ns < 999.5e3 ? ['µs', 1e3] : ns < 999.5e6 ? ['ms', 1e6] : ['s', 1e9];
  return `${per === 1 ? Math.round(ns) : (ns / per).toPrecision(3)} ${unit}`;
}

/**
 * A row in words: its values with their titles; nothing of those that it has not.
 * @param {string[]} titles
 * @param {string[]} row
 */
function say(titles, row) {
  return titles.flatMap((title, i) => {
    if (row[i] === '') return [];
    const [, name, unit] = /^(.*?)(?:_(ns|share))?$/.exec(title) ?? [];
    const value = unit === 'ns' ? duration(Number(row[i]))
      : unit === 'share' ? `${(100 * Number(row[i])).toFixed(1)} %`
      : row[i];
    return [`${name.replaceAll('_', ' ')} ${value}`];
  }).join(', ');
}

/**
 * What a file has between two values of its axis, in words: of the rows that lie there the one with most, which is drawn; where
 * none does, that there is none, and which share is not longer.
 * @param {string[][]} file  The titles first.
 * @param {number} low @param {number} high
 * @param {number} before  How far before its value the place of a row begins.
 * @param {number} width  How long it is, where the file does not say where it ends.
 */
function tell([titles, ...rows], low, high, before, width) {
  const end = titles.indexOf('to_ns'), counted = end < 0 ? 1 : 2, share = titles.indexOf('not_longer_share');
  const there = rows.filter(row => {
    const from = Number(row[0]) - before, to = end < 0 ? from + width : row[end] === '' ? Infinity : Number(row[end]);
    return from < high && (to > low || from >= low);
  });
  if (there.length > 0) return say(titles, there.reduce((most, row) => Number(row[counted]) > Number(most[counted]) ? row : most));
  if (share < 0) return '';
  const shorter = rows.findLast(row => Number(row[0]) <= low);
  return say([titles[counted], titles[share]], ['0', shorter ? shorter[share] : '0']);
}

/**
 * Tells what lies under the pointer, as the figure's file has it; where the axis has rows of its own, that one.
 * @param {HTMLElement} drawing
 */
function answer(drawing) {
  const canvas = /** @type {HTMLElement} */ (drawing.querySelector('.canvas'));
  const svg = /** @type {SVGSVGElement} */ (canvas.querySelector('svg'));
  const output = /** @type {HTMLOutputElement} */ (drawing.querySelector('output'));
  const link = /** @type {HTMLAnchorElement | null} */ (drawing.querySelector('a.csv'));
  if (!link) return;
  const [axis, scale, ...numbers] = (canvas.dataset.axis ?? '').split(' ');
  const [from, to, first, last, before, width] = numbers.map(Number);
  /** @param {number} pixel */
  const value = pixel => {
    const part = (pixel - first) / (last - first);
    return scale === 'log' ? from * (to / from) ** part : from + (to - from) * part;
  };
  /** @type {string[][]} */
  let rows = [];
  canvas.addEventListener('pointermove', event => {
    if (rows.length === 0) rows = parse(link.href);
    const box = svg.getBoundingClientRect();
    const pixel = axis === 'x'
      ? (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width
      : (event.clientY - box.top) * svg.viewBox.baseVal.height / box.height;
    const column = Math.floor(pixel), row = axis === 'y' ? rows[Math.floor(value(pixel)) + 1] : undefined;
    output.value = pixel < first || pixel > last ? ''
      : axis === 'x' ? tell(rows, value(column), value(column + 1), before, width)
      : row ? say(rows[0], row) : '';
  });
  canvas.addEventListener('pointerleave', () => { output.value = ''; });
}

/**
 * Shows a function of a flame graph, and with it those that called it, as wide as the whole.
 * @param {Element} figure
 * @param {Element | null} frame
 */
function widen(figure, frame) {
  for (const other of figure.querySelectorAll('.whole, .aside')) other.classList.remove('whole', 'aside');
  for (let at = frame; at; at = at.parentElement?.closest('.frame') ?? null) {
    at.classList.add('whole');
    for (const beside of at.parentElement?.children ?? []) if (beside !== at) beside.classList.add('aside');
  }
}

for (const figure of document.querySelectorAll('figure.flame')) {
  figure.addEventListener('click', event => {
    const button = event.target instanceof Element ? event.target.closest('.frame > button') : null;
    if (button) widen(figure, button.parentElement);
  });
}
for (const figure of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('figure.plot'))) {
  const drawings = /** @type {HTMLElement[]} */ (Array.from(figure.querySelectorAll('.drawing')));
  drawings.forEach(answer);
  figure.querySelector('select')?.addEventListener('change', event => {
    const chosen = /** @type {HTMLSelectElement} */ (event.target).selectedIndex;
    drawings.forEach((drawing, i) => { drawing.hidden = i !== chosen; });
  });
}
for (const figure of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('figure.table'))) {
  const table = figure.querySelector('table');
  const input = figure.querySelector('input');
  const output = figure.querySelector('output');
  if (!table) continue;
  table.tHead?.addEventListener('click', event => {
    const heading = event.target instanceof HTMLButtonElement && event.target.closest('th');
    if (heading) sort(table, heading);
  });
  if (input && output) input.addEventListener('input', () => filter(table, input.value, output));
}
document.documentElement.classList.add('scripted');
