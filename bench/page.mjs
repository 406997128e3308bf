// Writes docs/benchmarks.md from the results of a run.

import { nameOf } from './names.mjs';

const row = (...cells) => `| ${cells.join(' | ')} |`;
const us = (ns) => (ns / 1000).toFixed(1);

/** The names of snowdrift's own calls. */
const LONE = {
  nextId: 'snowdrift nextId()',
  nextIdString: 'snowdrift nextIdString()',
  'nextId, with state': 'snowdrift nextId(), with state',
};

/** Fleets in virtual time, measured by `tests/leases/fleet`. */
const LEASES = `
## Leases from a store

Calls to the store in a simulation of whole fleets: the protocol that ships, in virtual time, with the default \`ttl\` of 30 s
and a store that replies within 2 to 6 ms. Hosts with 16 processes share 1,024 worker IDs, hosts with one process 16,384.
\`cargo test --release --test core leases:: -- --ignored --nocapture figures_of\` repeats it.

|  | 1,000 hosts of 16 processes | 10,000 hosts of 1 process |
| --- | --- | --- |
| all start within 0.5 s, in an empty namespace | 102,560 calls | 348,675 calls |
| ... until all issue | 1.2 s | 2.5 s |
| all start again after a power cut of a minute | 43,478 calls | 181,440 calls |
| ... until all issue | 1.0 s | 1.1 s |
| steady state: calls a second | 100 | 1,000 |
| ... the most in a second, since all started at once | 933 | 9,484 |
| rolling restart, 1% of the hosts at a time, each away for 10 s: calls a second | 120 | 1,066 |
| ... the most in a second | 1,419 | 9,344 |
| ... worker IDs used from the start | 1,024 | 11,871 |
| a store that does not answer for an hour: calls a second | 2,667 | 1,667 |
| the store is back: calls a second in the first minute | 122 | 1,167 |
| ... the most in a second | 1,643 | 18,471 |
| ... until all issue again | 1.3 s | 1.9 s |

A host renews once in 10 s, however many processes it has. A process that joins its host's slot takes two calls; one that
takes a used worker ID takes five, and a new one eight. It takes a call more for each further bucket of 64 worker IDs that it
looks into: buckets may be full, or hosts that start at the same time may change them. While the store does not answer, each
process of a host tries to renew.
`;

/** @param results the content of results/latest.json */
export function page({ date, machine, rounds, ns, turns, calls, rows, lag }) {
  const { cpu, cores, os, node } = machine;
  return `# Benchmarks

${cpu}, ${cores} cores, ${os}, Node ${node}, ${date}. \`npm run bench -- --save\` measures all of it on your machine, and
writes this page.

![ns per ID, log scale](../bench/results/chart.svg)

${row('in a loop', 'ns per ID')}
${row('---', '---')}
${Object.entries(ns)
  .sort(([, a], [, b]) => a - b)
  .map(([name, value]) => row(nameOf(name), value.toFixed(1)))
  .join('\n')}

${row('one per callback', 'ns per ID')}
${row('---', '---')}
${Object.entries(turns.lone)
  .sort(([, a], [, b]) => a - b)
  .map(([name, value]) => row(LONE[name] ?? nameOf(name), value.toFixed(0)))
  .join('\n')}

## How it is measured

- All candidates take turns in one process, ${rounds} rounds. The figures are medians. A machine that slows down does so for
  all.
- IDs are kept and used, so that no compiler can leave out their generation.
- In loops snowdrift has a layout with 20 sequence bits. With the default's 12 bits, the wait for the next ms would be
  measured, which is the same for all. The limit of the default layout, and its CPU time, are [below](#targets-and-results).
- One ID per callback, as in a request handler, is measured with the default layout. The time of the callback is subtracted.
- Other packages are called as their READMEs show. One that throws when a millisecond is full is called again, as its users must.
- The Node SnowFlake class is the usual port of Twitter's Snowflake to JavaScript, with BigInt arithmetic throughout. It was
  written anew for this page. Hand-tuned JavaScript is the fastest that we could write, without a BigInt on the way. Neither
  is safe when the clock goes back.

## Targets and results

Each target was set before it was measured. Those that were not reached say so.

${row('', 'target', 'measured', '')}
${row('---', '---', '---', '---')}
${rows.map(({ what, target, measured, met }) => row(what, target, measured, met ? '' : '**not reached**')).join('\n')}

The array takes most of the time of a batch. An array of 2 IDs takes as long to create as 2 calls of \`nextId()\`. One of 9 or
more has memory of its own. One of 100,000 waits for the kernel, which has to provide new memory. A \`Date\` takes two
thirds of \`parse()\`: one that is created on demand takes more, as an own property of each ID. V8 joins a string
when it is first read, so strings that are written into a Buffer at once gain less. With the default layout a loop gets one ID
per 244 ns, its limit of 4,096 per ms. It loses a millisecond where the scheduler wakes its thread a millisecond too late, as
with any thread that sleeps. Most of \`require('snowdrift')\` is finding, reading and compiling its files: one bundled
file takes two thirds as long, which is 4 times the addon alone.

## How far IDs lag

The share of IDs whose timestamp is at most 1 ms before the call, in loops with a steady rate:

${row('one ID per', ...Object.keys(lag.shares).map((gap) => (gap === '0' ? 'loop' : `${gap / 1000} us`)))}
${row('---', ...Object.keys(lag.shares).map(() => '---'))}
${row('', ...Object.values(lag.shares).map((share) => `${(share * 100).toFixed(2)}%`))}

IDs whose timestamp is before the pause, after so many calls in one callback and a pause of 20 ms:

${row('calls', ...Object.keys(lag.pauses))}
${row('---', ...Object.keys(lag.pauses).map(() => '---'))}
${row('IDs', ...Object.values(lag.pauses))}

## Latency at 100,000 calls per second

Each call is measured by itself, in us:

![us per call at 100,000 calls per second, by either class](../bench/results/latency.svg)

${row('', 'median', '99%', '99.9%', 'longest')}
${row('---', '---', '---', '---', '---')}
${Object.entries(calls)
  .map(([name, { p50, p99, 'p99.9': p999, max }]) => row(name, us(p50), us(p99), us(p999), us(max)))
  .join('\n')}

The longest are partly the machine's: an empty call, measured the same way, took up to ${us(calls['nothing, only measured'].max)}.
${LEASES}`;
}
