// Asks Perfetto's trace processor: the one that runs in the browser below its user interface, here in Node.
//
//   node trace_processor.mjs DIRECTORY TRACE < QUERIES
//
// DIRECTORY holds `engine_bundle.js` and `trace_processor.wasm` (a build of the user interface). QUERIES is a JSON array of
// SQL; printed is a JSON array with, of each, {"columns": […], "rows": [[…], …]}; whole numbers keep all their digits.
// The processor is a worker that is spoken to in protocol buffers
// (protos/perfetto/trace_processor/trace_processor.proto), of which a few messages are written and read here by hand.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';

const [directory, trace] = process.argv.slice(2);

/** What the worker expects around it. */
const world = {
  console: { log: () => {}, warn: text => process.stderr.write(`${text}\n`), error: console.error },
  WorkerGlobalScope: function WorkerGlobalScope() {},
  location: { href: 'http://localhost/engine_bundle.js' },
  // The binary is asked for synchronously, by its name.
  XMLHttpRequest: class {
    open(_, url) {
      this.path = join(directory, url.split('/').pop());
    }
    send() {
      const bytes = readFileSync(this.path);
      this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    }
  },
  TextDecoder,
  TextEncoder,
  setTimeout,
  performance,
  crypto,
  importScripts: () => {},
};
world.self = world;
vm.createContext(world);
/** Its arrays are not ours: it looks at their type. */
const Bytes = vm.runInContext('Uint8Array', world);

/** A number as a varint. */
function varint(n) {
  const bytes = [];
  for (n = BigInt(n); n >= 0x80n; n >>= 7n) bytes.push(Number(n & 0x7fn) | 0x80);
  return [...bytes, Number(n)];
}

/** A field: a number, or bytes with their length. */
function field(number, value) {
  if (typeof value === 'number') return Buffer.from([...varint(number << 3), ...varint(value)]);
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(bytes.length)]), bytes]);
}

/** Bytes that are read from front to back. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  get more() {
    return this.at < this.bytes.length;
  }
  varint() {
    let n = 0n;
    for (let shift = 0n; this.more; shift += 7n) {
      const byte = this.bytes[this.at++];
      n |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return n;
    }
    throw new Error('a message ends early');
  }
  take(length) {
    return this.bytes.subarray(this.at, (this.at += length));
  }
}

/** The varints of a packed field. */
function* varints(bytes) {
  for (const reader = new Reader(bytes); reader.more; ) yield reader.varint();
}

/** The fields of a message: [number, value]. */
function* fields(bytes) {
  for (const reader = new Reader(bytes); reader.more; ) {
    const key = Number(reader.varint());
    const [number, type] = [key >>> 3, key & 7];
    if (type === 0) yield [number, reader.varint()];
    else if (type === 2) yield [number, reader.take(Number(reader.varint()))];
    else if (type === 1 || type === 5) reader.take(type === 1 ? 8 : 4);
    else throw new Error(`wire type ${type} was not expected`);
  }
}

const method = { append: 1, finalize: 2, query: 3 };
const answers = [];
let seq = 0;

/** Sends a request, which is answered before this returns. */
function ask(port, request, ...more) {
  answers.length = 0;
  const rpc = Buffer.concat([field(1, ++seq), field(2, request), ...more]);
  port.onmessage({ data: new Bytes(field(1, rpc)) });
  const found = [];
  // An answer comes in pieces that are no messages.
  for (const [, rpc] of fields(Buffer.concat(answers))) {
    for (const [number, value] of fields(rpc)) {
      if (number === 5) throw new Error(`the trace processor failed: ${value}`);
      if (number > 200) found.push([number, value]);
    }
  }
  return found;
}

/** The rows of a query. */
function query(port, sql) {
  const columns = [];
  const cells = [];
  for (const [, result] of ask(port, method.query, field(103, field(1, sql)))) {
    for (const [number, value] of fields(result)) {
      if (number === 1) columns.push(value.toString());
      if (number === 2 && value.length) throw new Error(`${sql}: ${value}`);
      if (number === 3) cells.push(...batch(value));
    }
  }
  const rows = [];
  for (let i = 0; i < cells.length; i += columns.length) rows.push(cells.slice(i, i + columns.length));
  return { columns, rows };
}

/** The cells of a batch, as JSON. */
function batch(bytes) {
  const kinds = [];
  const numbers = [];
  const floats = [];
  let texts = [];
  for (const [number, value] of fields(bytes)) {
    if (number === 1) kinds.push(...varints(value));
    if (number === 2) for (const n of varints(value)) numbers.push(BigInt.asIntN(64, n));
    if (number === 3) {
      const view = new DataView(value.buffer, value.byteOffset, value.length);
      for (let at = 0; at < value.length; at += 8) floats.push(view.getFloat64(at, true));
    }
    if (number === 5) texts = value.toString().split('\0');
  }
  let [n, f, t] = [0, 0, 0];
  return kinds.map(kind => {
    switch (Number(kind)) {
      case 2: return numbers[n++].toString();
      case 3: return String(floats[f++]); // `Infinity`, too, which Python reads
      case 4: return JSON.stringify(texts[t++]);
      default: return 'null';
    }
  });
}

vm.runInContext(readFileSync(join(directory, 'engine_bundle.js'), 'utf8'), world);
const port = { postMessage: bytes => answers.push(Buffer.from(bytes)) };
world.onmessage({ data: port });
// The binary is there when its start-up has run, which is a promise.
await new Promise(done => setTimeout(done, 0));

const bytes = readFileSync(trace);
const chunk = 1 << 24;
for (let at = 0; at < bytes.length; at += chunk) {
  for (const [, result] of ask(port, method.append, field(101, bytes.subarray(at, at + chunk)))) {
    for (const [number, value] of fields(result)) if (number === 2) throw new Error(`${value}`);
  }
}
ask(port, method.finalize);
const queries = JSON.parse(readFileSync(0, 'utf8'));
const results = queries.map(sql => {
  const { columns, rows } = query(port, sql);
  return `{"columns":${JSON.stringify(columns)},"rows":[${rows.map(row => `[${row}]`).join(',\n')}]}`;
});
process.stdout.write(`[${results.join(',\n')}]\n`);
