// Makes the drawings of docs/drawings, and the charts of bench/results from the figures beside them.
// package/pictures.test.js fails if one is not up to date:
//
//   node scripts/drawings.mjs

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { chart, latencyChart, memoryChart } from '../bench/chart.mjs';
import id from '../js/id.js';
import { BOLD, END, element, line, MIDDLE, picture, rect, text, WIDTH } from './svg.mjs';

const ROOT = new URL('../', import.meta.url);

/** By field: its bits in a layout, its name in the legend, and the colour of text on it. */
const FIELDS = {
  timestamp: ['timestampBits', 'timestamp', 'on-dark'],
  datacenter: ['datacenterBits', 'datacenter ID', 'on-light'],
  worker: ['workerBits', 'worker ID', 'on-light'],
  'clock-back': ['clockBackBits', 'clock-back counter', 'on-light'],
  sequence: ['sequenceBits', 'sequence', 'on-light'],
};
const BITS = 64;
const LEFT = 80;

/** A layout's bits, from 63 down. */
function bitsOf(name, layout, y) {
  const perBit = (WIDTH - 12 - LEFT) / BITS;
  const used = Object.values(FIELDS).reduce((sum, [key]) => sum + layout[key], 0);
  const unused = BITS - used;
  const cells = [['unused', unused, unused > 1 ? String(unused) : '', 'text']];
  for (const [field, [key, , on]] of Object.entries(FIELDS)) {
    const bits = layout[key];
    cells.push([field, bits, bits >= 12 ? `${field} ${bits}` : String(bits), on]);
  }
  let x = LEFT;
  const parts = [text(12, y + 20, name, 'text', BOLD)];
  for (const [field, bits, label, on] of cells.filter(([, bits]) => bits > 0)) {
    parts.push(rect(x, y, bits * perBit, 30, field));
    if (label !== '') parts.push(text(x + (bits * perBit) / 2, y + 20, label, on, MIDDLE));
    x += bits * perBit;
  }
  const tick = layout.tickMs === 1 ? 'ms' : `${layout.tickMs / 1000} s`;
  const epoch = new Date(layout.epoch).toISOString().replace(/(:00)?\.000Z$/, 'Z');
  return [...parts, text(LEFT, y + 46, `${tick} since ${epoch}`, 'quiet')];
}

function bits() {
  const rows = Object.entries(id.layouts);
  const top = 34;
  const parts = [
    text(LEFT, 22, 'bit 63', 'quiet'),
    text(WIDTH - 12, 22, 'bit 0', 'quiet', END),
    rows.map(([name, layout], row) => bitsOf(name, layout, top + row * 62)),
  ];
  const y = top + rows.length * 62 + 6;
  const legend = Object.entries(FIELDS).map(([field, [, label]]) => [field, label]);
  for (const [n, [field, label]] of [...legend, ['unused', 'unused: 0']].entries()) {
    const [x, below] = [LEFT + (n % 3) * 165, y + Math.floor(n / 3) * 24];
    parts.push(rect(x, below, 12, 12, field), text(x + 20, below + 11, label));
  }
  return picture('How each layout divides the 63 bits of an ID', y + 48, parts);
}

const LAYERS = {
  JavaScript: {
    cli: 'npx snowdrift',
    exports: 'cluster, worker-id, nestjs, orm',
    'SnowFlake, CachedSnowFlake': 'the default instance',
    generator: 'options, opening, draws by blocks',
    lease: 'renews a slot, finds another one',
    stores: 'a LeaseStore per server',
    ids: 'decodes, encodes',
    base: 'checks, errors, events, time, the addon',
  },
  Rust: {
    binding: 'requests, channels',
    ring: 'filled ahead by a thread',
    registry: 'one generator per node and process',
    lease: 'pages bound to slot files, resets',
    generator: 'sequence, clock, window, waiting',
    host: 'pages in shared memory',
    store: 'slot files: records, locks',
    files: 'paths, locks, owners, the system',
    core: 'layout, node, clock, sequencer, pace',
  },
};

function layers() {
  const parts = [];
  let y = 12;
  for (const [language, all] of Object.entries(LAYERS)) {
    const box = language === 'Rust' ? 'rust rust-line' : 'script script-line';
    if (language === 'Rust') {
      parts.push(line(12, y + 12, WIDTH - 12, y + 12, 'limit', { 'stroke-dasharray': '5 4' }));
      parts.push(text(12, y + 32, 'Node-API', 'red'));
      y += 26;
    }
    const below = language === 'Rust' ? 50 : 22;
    parts.push(text(12, y + below, language));
    for (const [name, use] of Object.entries(all)) {
      const bold = element('tspan', BOLD, name);
      const quiet = element('tspan', { className: 'quiet', dx: 8 }, use);
      parts.push(rect(100, y, WIDTH - 112, 34, box, { rx: 4 }));
      const middle = { x: 100 + (WIDTH - 112) / 2, y: y + 22, className: 'text', ...MIDDLE };
      parts.push(element('text', middle, bold + quiet));
      y += 40;
    }
  }
  parts.push(text(100, y + 18, 'Each layer uses those below it.', 'quiet'));
  return picture('Layers of snowdrift: each layer uses the ones below', y + 34, parts);
}

function turns() {
  const [left, ms] = [92, 166];
  const dashed = { 'stroke-dasharray': '3 4' };
  const parts = [0, 1, 2, 3].map((n) =>
    line(left + n * ms, 38, left + n * ms, 186, 'rule', dashed),
  );
  for (const n of [0, 1, 2]) {
    parts.push(text(left + (n + 0.5) * ms, 26, `ms ${100 + n}`, 'quiet', MIDDLE));
  }
  parts.push(text(12, 83, 'event loop'), text(12, 168, 'blocks'));
  const call = (x, width, label) => [
    rect(x, 58, width, 40, 'script script-line', { rx: 4 }),
    text(x + width / 2, 83, label, 'text', MIDDLE),
  ];
  const block = (x, width, field) => rect(x, 145, width, 36, field, { rx: 3 });
  const label = (x, content) => text(x, 168, content, 'on-light', MIDDLE);
  parts.push(call(100, 66, 'nextId()'), call(176, 66, 'nextId()'));
  parts.push(block(112, 146, 'sequence'), label(185, 'checked block'));
  parts.push(text(100, 206, 'valid in any turn,'), text(100, 223, 'while the clock shows'));
  parts.push(text(100, 240, "the block's millisecond"));
  parts.push(call(280, 184, 'a loop of nextId()'));
  parts.push(block(284, 10, 'sequence'), block(298, 10, 'sequence'));
  parts.push(block(314, 40, 'timestamp'), block(358, 40, 'timestamp'));
  const rest = { 'stroke-dasharray': '4 3', rx: 3 };
  parts.push(rect(402, 145, 62, 36, 'card limit', rest), block(402, 34, 'timestamp'));
  parts.push(text(284, 206, 'unchecked blocks of 16 to 256 IDs: no look'));
  parts.push(text(284, 223, 'at the clock, valid until the turn ends'));
  parts.push(text(284, 240, 'the rest is given back when the turn ends', 'red'));
  parts.push(call(494, 66, 'nextId()'), block(506, 84, 'sequence'), label(548, 'checked'));
  parts.push(text(12, 272, 'No ID is older than the start of the turn that draws it.', 'quiet'));
  parts.push(text(12, 290, 'The first 16 IDs of a turn come from checked blocks.', 'quiet'));
  const title =
    'A block of IDs is valid while the clock shows its millisecond, or until its turn ends';
  return picture(title, 306, parts);
}

function window() {
  const [end, dies, ceiling] = [WIDTH - 20, 190, 290];
  const points = `${end},206 ${end - 8},202.5 ${end - 8},209.5`;
  const parts = [
    line(20, 206, end, 206, 'axis', { 'stroke-width': 1.5 }),
    element('polygon', { points, className: 'other' }),
    text(end, 226, 'ticks', 'quiet', END),
    rect(30, 44, ceiling - 30, 36, 'card script-line', { 'stroke-dasharray': '4 3', rx: 4 }),
    rect(30, 44, dies - 30, 36, 'timestamp', { rx: 4 }),
    text(42, 67, 'holder A', 'on-dark'),
    text(ceiling + 10, 59, 'A dies; how far it came', 'quiet'),
    text(ceiling + 10, 76, 'nobody needs to know', 'quiet'),
    rect(ceiling, 130, 130, 36, 'sequence', { rx: 4 }),
    text(ceiling + 12, 153, 'holder B', 'on-light'),
    text(ceiling + 140, 145, 'its own ceiling rises', 'quiet'),
    text(ceiling + 140, 162, 'with each renewal', 'quiet'),
    line(ceiling, 34, ceiling, 206, 'limit', { 'stroke-width': 2 }),
    text(ceiling, 24, 'recorded ceiling of A = floor of B', 'red', MIDDLE),
    line(dies, 80, dies, 206, 'rule', { 'stroke-dasharray': '3 4' }),
    text(dies - 8, 196, 'A dies', 'quiet', END),
    text(12, 256, 'The store confirms a ceiling before anything below it is issued.', 'quiet'),
    text(12, 274, 'Clocks, pauses and timeouts are not needed for this.', 'quiet'),
  ];
  return picture('Two holders of one slot never issue IDs of the same tick', 290, parts);
}

/** All pictures, by path. */
export function pictures() {
  const read = (path) => JSON.parse(readFileSync(new URL(path, ROOT), 'utf8'));
  const measured = read('bench/results/latest.json');
  return {
    'docs/drawings/bits.svg': bits(),
    'docs/drawings/layers.svg': layers(),
    'docs/drawings/turns.svg': turns(),
    'docs/drawings/window.svg': window(),
    'bench/results/chart.svg': chart(measured),
    'bench/results/latency.svg': latencyChart(measured),
    'bench/results/soak.svg': memoryChart(read('bench/results/soak.json')),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, content] of Object.entries(pictures())) {
    writeFileSync(new URL(path, ROOT), content);
  }
}
