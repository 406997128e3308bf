// Writes docs/benchmarks.md from the results of a run.

const row = (...cells) => `| ${cells.join(' | ')} |`;
const us = (ns) => (ns / 1000).toFixed(1);

/** @param results the content of results/latest.json */
export function page({ date, machine, rounds, ns, calls, rows, lag }) {
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

What they do not show: an array takes most of the time of a batch. One of 2 IDs takes as long to create as 2 calls of
\`nextId()\`, one of 9 or more has memory of its own, and one of 100,000 waits for the kernel, which gives out new memory.
A \`Date\` takes two thirds of \`parse()\`: one that is made when it is asked for takes more, as an own property of each ID.
A string is joined when it is first looked into; written into a Buffer at once it gains less. On the default layout a
loop gets an ID each 244 ns: that is its ceiling, 4,096 a ms. It loses a ms where the scheduler wakes its thread a ms
too late, as a thread that only sleeps does. Most of \`require('snowdrift')\` is finding, reading and compiling its files:
one bundled file takes two thirds as long, which is 4 times the addon alone.

## How far IDs lag

The share of IDs whose time is that of their draw, or 1 ms before it, in loops that draw at a steady rate:

${row('an ID each', ...Object.keys(lag.shares).map((gap) => (gap === '0' ? 'loop' : `${gap / 1000} us`)))}
${row('---', ...Object.keys(lag.shares).map(() => '---'))}
${row('', ...Object.values(lag.shares).map((share) => `${(share * 100).toFixed(2)}%`))}

IDs that show a time before the pause, after so many draws in one turn and a pause of 20 ms:

${row('draws', ...Object.keys(lag.pauses))}
${row('---', ...Object.keys(lag.pauses).map(() => '---'))}
${row('IDs', ...Object.values(lag.pauses))}

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
