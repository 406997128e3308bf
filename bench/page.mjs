// docs/benchmarks.md, from what a run has measured.

const row = (...cells) => `| ${cells.join(' | ')} |`;
const us = (ns) => (ns / 1000).toFixed(1);

/** @param results what results/latest.json holds */
export function page({ date, machine, rounds, ns, calls, rows }) {
  const { cpu, cores, os, node } = machine;
  return `# Benchmarks

${cpu}, ${cores} cores, ${os}, Node ${node}, ${date}. \`npm run bench -- --save\` measures all of it on your machine, and
writes this page.

![ns an ID, log scale](../bench/results/chart.svg)

${row('a loop that draws', 'ns an ID')}
${row('---', '---')}
${Object.entries(ns)
  .sort(([, a], [, b]) => a - b)
  .map(([name, value]) => row(name, value.toFixed(1)))
  .join('\n')}

## How it is measured

- All candidates in one process, in turns, ${rounds} rounds; what is shown are medians. A machine that slows down
  does so for all.
- IDs are kept and used, so that no compiler can leave out what makes them.
- The layout of the loops has 20 bits of sequence: else the wait for the next ms would be measured, which is the
  same for all. What the default layout allows, and how much of a core it takes, stands below.
- Peers are called as their readme says. One that throws when a tick is used up is called again, as its users must.
- The Node class is its algorithm, written afresh; hand-tuned JavaScript is as fast as we could write one without a
  BigInt on the way.

## What is claimed, and what was measured

Each was a bar before it was measured. Those that were not reached say so.

${row('', 'bar', 'measured', '')}
${row('---', '---', '---', '---')}
${rows.map(({ what, bar, measured, met }) => row(what, bar, measured, met ? '' : '**not reached**')).join('\n')}

What they do not show: a single \`nextId()\` a turn of the event loop is one native call, two to three times as slow as
JavaScript that need not ask anyone. \`nextIds\` spends most of its time in the kernel, which gives out new memory.
A string is joined when it is first looked into; written into a Buffer at once it gains less.

## One call among others

100,000 calls a second, each measured by itself, in us:

![us a call at 100,000 a second, by either class](../bench/results/latency.svg)

${row('', 'median', '99%', '99.9%', 'longest')}
${row('---', '---', '---', '---', '---')}
${Object.entries(calls)
  .map(([name, { p50, p99, 'p99.9': p999, max }]) => row(name, us(p50), us(p99), us(p999), us(max)))
  .join('\n')}

The machine has its part in the longest: nothing at all, measured the same way, took ${us(calls['nothing, only measured'].max)}.
`;
}
