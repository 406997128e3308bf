// Draws measurements as SVG charts: results/latest.json and results/soak.json. `node scripts/drawings.mjs` draws them
// anew without measuring.

import id from '../js/id.js';
import { BOLD, END, element, line, MIDDLE, picture, rect, text, WIDTH } from '../scripts/svg.mjs';
import { plainNameOf } from './names.mjs';

const LEFT = 246;
const RIGHT = 66;
const ROW = 26;
const [TITLE, FIRST] = [22, 42];

const count = (value) => value.toLocaleString('en-US');

/** Title and captions, one below the other, and where the rest begins. */
function head(title, captions) {
  const lines = captions.map((caption, n) => text(12, FIRST + n * 18, caption, 'quiet'));
  const parts = [text(12, TITLE, title, 'text', { ...BOLD, 'font-size': 15 }), ...lines];
  return { parts, top: FIRST + captions.length * 18 };
}

/** x by value on a log scale from `least` to the next power of ten above all values. */
function logScale(least, values) {
  const most = 10 ** Math.ceil(Math.log10(Math.max(...values)));
  const decades = Math.log10(most / least);
  const x = (value) =>
    LEFT + (Math.log10(Math.max(value, least) / least) / decades) * (WIDTH - LEFT - RIGHT);
  const steps = Array.from({ length: Math.round(decades) + 1 }, (_, n) => least * 10 ** n);
  return { x, steps };
}

function bar({ x }, y, name, value, shown, colour) {
  const width = Math.max(x(value) - LEFT, 2);
  return [
    text(LEFT - 8, y + 14, name, 'text', END),
    rect(LEFT, y, width, 18, colour, { rx: 3 }),
    text(LEFT + width + 6, y + 14, shown, 'text halo', {
      'stroke-width': 5,
      'paint-order': 'stroke',
    }),
  ];
}

function grid({ x, steps }, top, bottom, shown) {
  const lines = steps.map((value) => line(x(value), top, x(value), bottom));
  return [
    ...lines,
    ...steps.map((value) => text(x(value), bottom + 18, shown(value), 'text', MIDDLE)),
  ];
}

const widthsOf = ({ timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits }) =>
  [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits].join('/');

const named = (nsByKind) =>
  Object.fromEntries(Object.entries(nsByKind).map(([kind, ns]) => [plainNameOf(kind), ns]));

/** ns by name, by title. */
function groupsOf({ ns, turns: { lone }, decoded, sustained, layout }) {
  const [HAND, CLASS] = ['hand-tuned JavaScript', 'Node SnowFlake class'];
  return {
    [`One ID per callback; layout ${widthsOf(id.layouts.node)}`]: {
      'snowdrift nextId()': lone.nextId,
      'snowdrift nextIdString()': lone.nextIdString,
      [HAND]: lone[HAND],
      [CLASS]: lone[CLASS],
    },
    [`A loop; layout ${widthsOf(layout)}`]: {
      ...named(ns),
      [`snowdrift, default ${widthsOf(id.layouts.node)}`]: 1e9 / sustained.bigint.perSecond,
    },
    [`Decoding all fields and the date; layout ${widthsOf(id.layouts.node)}`]: Object.fromEntries(
      Object.entries(decoded)
        .filter(([name]) => /parse|deconstruct/.test(name))
        .map(([name, value]) => [name.replace(/^parse/, 'snowdrift parse'), value]),
    ),
  };
}

/** @param results of a run */
export function chart(results) {
  const { machine, date, rounds } = results;
  const groups = groupsOf(results);
  const { parts, top } = head('ns per ID, log scale: shorter is faster', [
    `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, ${date}`,
    `medians of ${rounds} interleaved rounds; peers have layouts of their own`,
  ]);
  const scale = logScale(
    10,
    Object.values(groups).flatMap((nsByName) => Object.values(nsByName)),
  );
  let y = top + 4;
  for (const [title, nsByName] of Object.entries(groups)) {
    parts.push(text(12, y + 14, title, 'text', BOLD));
    y += ROW;
    const rows = Object.entries(nsByName).sort(([, a], [, b]) => a - b);
    const bottom = y + rows.length * ROW;
    parts.push(grid(scale, y - 4, bottom, (ns) => `${count(ns)} ns`));
    for (const [name, ns] of rows) {
      const colour = name.startsWith('snowdrift') ? 'blue' : 'other';
      parts.push(bar(scale, y, name, ns, count(Math.round(ns)), colour));
      y += ROW;
    }
    y = bottom + 36;
  }
  return picture('ns per ID, by snowdrift and others', y - 4, parts);
}

const SHARES = ['p50', 'p99', 'p99.9', 'max'];
const COLOURS = { SnowFlake: 'blue', CachedSnowFlake: 'purple' };

/** Latencies by percentile, up to the maximum; log scale. */
export function latencyChart({ calls, machine, date }) {
  const rows = SHARES.flatMap((share) =>
    Object.keys(COLOURS).map((name) => ({ share, name, ns: calls[name][share] })),
  );
  const empty = calls['nothing, only measured'];
  const us = (ns) => count(Number((ns / 1000).toFixed(1)));
  const { parts, top } = head('us a call of nextId(), one a turn, 100,000 a second', [
    `with the measuring itself: p50 ${us(empty.p50)}, max ${us(empty.max)} us`,
    `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, ${date}; default layout`,
  ]);
  const scale = logScale(
    100,
    rows.map(({ ns }) => ns),
  );
  const bottom = top + 4 + rows.length * ROW;
  parts.push(grid(scale, top, bottom, us));
  for (const [n, { share, name, ns }] of rows.entries()) {
    parts.push(bar(scale, top + 4 + n * ROW, `${share}, ${name}`, ns, us(ns), COLOURS[name]));
  }
  return picture('us a call of nextId(), by percentile', bottom + 32, parts);
}

const CURVES = { rss: 'blue', heapUsed: 'purple', external: 'green' };
const BETWEEN = 17;

/** A process's memory over time, of results/soak.json. */
export function memoryChart({ seconds, ids, rounds, cpu, node, date, samples }) {
  const { parts, top } = head('Memory of a process that opens, draws and closes without end', [
    `${Math.round(seconds / 60)} minutes, ${count(ids)} IDs, ${count(rounds)} rounds`,
    `${cpu}, Node ${node}, ${date}`,
  ]);
  const [left, right, bottom] = [70, WIDTH - 84, top + 240];
  const most = Math.ceil(Math.max(...samples.map(({ rss }) => rss)) / 20e6) * 20e6;
  const last = samples.at(-1).seconds;
  const x = (at) => left + (at / last) * (right - left);
  const y = (bytes) => bottom - (bytes / most) * (bottom - top - 8);
  for (let bytes = 0; bytes <= most; bytes += 20e6) {
    parts.push(line(left, y(bytes), right, y(bytes)));
    parts.push(text(left - 8, y(bytes) + 4, `${bytes / 1e6} MB`, 'text', END));
  }
  for (let part = 0; part <= 5; part++) {
    const at = (last * part) / 5;
    const minutes = Number((at / 60).toFixed(1));
    parts.push(text(x(at), bottom + 22, `${minutes} min`, 'text', MIDDLE));
  }
  // The lowest name first; those above it keep their distance.
  let lowest = Infinity;
  const lines = Object.entries(CURVES).map(([name, colour]) => [
    name,
    colour,
    samples.at(-1)[name],
  ]);
  for (const [name, colour, bytes] of lines.sort(([, , a], [, , b]) => a - b)) {
    const points = samples.map((one) => `${x(one.seconds).toFixed(1)},${y(one[name]).toFixed(1)}`);
    const curve = { points: points.join(' '), fill: 'none', 'stroke-width': 1.5 };
    parts.push(element('polyline', { className: `${colour}-line`, ...curve }));
    lowest = Math.min(y(bytes) + 4, lowest - BETWEEN);
    parts.push(text(right + 6, lowest, name, colour));
  }
  return picture('Memory of a process over time', bottom + 36, parts);
}
