// Lets tables be sorted and filtered. The page says the same without it.

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
