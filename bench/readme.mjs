// Writes docs/comparison.md, and what the README shows of results/: behind a comment that names it, up to an empty line.

import { readFileSync, writeFileSync } from 'node:fs';

import { nsPerCallback, page, summary, time } from './peers/page.mjs';

const here = (path) => new URL(path, import.meta.url);
const read = (path) => readFileSync(here(path), 'utf8');

/** The content of results/. */
export function results() {
  const [measured, peers] = ['latest', 'peers'].map((name) =>
    JSON.parse(read(`results/${name}.json`)),
  );
  return { measured, peers };
}

const percent = (share, digits) => `${(share * 100).toFixed(digits)}%`;
const ratio = (value) => value.toFixed(1);

function speed(measured) {
  const { ns, sustained, turns, machine, rounds, date } = measured;
  const hand = 'hand-tuned JavaScript';
  const { bigint } = sustained;
  const loop = ns['snowdrift nextId()'];
  const callback = nsPerCallback(measured).snowdrift;
  return `One ID per callback, as in a request handler, takes ${time(callback)}: ${ratio(callback / turns.lone[hand])} times as long as hand-tuned JavaScript that guarantees
nothing. A loop reaches ${percent(bigint.ofCeiling, 1)} of the default layout's limit of 4,096 IDs per ms, using ${percent(bigint.cores, 0)} of one core. With 20 sequence
bits in place of 12, an ID in a loop takes ${loop.toFixed(0)} ns; the hand-tuned JavaScript takes ${ratio(ns[hand] / loop)} times as long. Medians of ${rounds} rounds on
${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, ${date}. [Benchmarks](docs/benchmarks.md) has the method, and the targets that were not reached.`;
}

/** What stands behind the comments, by name. */
export const blocks = ({ measured, peers }) => ({
  comparison: summary(peers, measured),
  speed: speed(measured),
});

/** A README with the present figures. */
export function filled(readme, figures) {
  let text = readme;
  for (const [name, block] of Object.entries(figures)) {
    const old = new RegExp(`(<!-- ${name}, .*-->\n)(?:.+\n)*`);
    if (!old.test(text)) throw new Error(`README.md has no comment '${name}, ...'`);
    text = text.replace(old, (_, start) => `${start}${block}\n`);
  }
  return text;
}

export function save() {
  const { measured, peers } = results();
  writeFileSync(here('../README.md'), filled(read('../README.md'), blocks({ measured, peers })));
  writeFileSync(here('../docs/comparison.md'), page(peers, measured));
}
