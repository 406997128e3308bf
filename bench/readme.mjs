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

function speed(measured) {
  const { ns, sustained, turns, machine, rounds, date } = measured;
  const hand = 'hand-tuned JavaScript';
  const { bigint } = sustained;
  return `One ID per callback, as in a request handler, takes ${time(nsPerCallback(measured).snowdrift)}. The fastest JavaScript that we could write takes ${time(turns.lone[hand])}, and
guarantees nothing. In a loop an ID takes ${time(ns['snowdrift nextId()'])} with 20 sequence bits, since snowdrift reserves blocks; that JavaScript takes ${time(ns[hand])}.
With the default layout, a loop reaches ${percent(bigint.ofCeiling, 1)} of the limit of 4,096 IDs per ms, and uses ${percent(bigint.cores, 0)} of one core. Medians of ${rounds} rounds on
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
