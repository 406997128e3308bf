'use strict';
// `snowdrift next`

const { ASYNC_DISPOSE } = require('../instance.js');
const { NODE, NODE_HELP, open, wholeNumber } = require('./flags.js');

const MOST = 1_000_000;

const help = `Usage: snowdrift next [-n COUNT] [--string] [options]

Draws IDs, one a line. On Linux, all processes of one user with one worker ID share one sequence. On macOS and
Windows, two that run at one time draw the same IDs, unless --state or --lease excludes that.

  -n COUNT              how many, 1 to 1000000; default 1
  --string              as JSON strings, in quotes; with --json they always are
  --json                one array of strings: JSON has no numbers of 64 bits
${NODE_HELP}`;

const options = { ...NODE, count: { type: 'string', short: 'n' }, string: { type: 'boolean' } };

async function run(flags, positionals, { print, usage }) {
  if (positionals.length > 0) throw usage(`next takes no '${positionals[0]}'`);
  const count = wholeNumber('n', flags.count) ?? 1;
  if (count < 1 || count > MOST) throw usage(`-n must be 1 to ${MOST}; it is ${count}`);
  const flake = await open(flags, { maxWait: 1000 });
  try {
    const ids = flake.nextIdStrings(count);
    if (flags.json) print(JSON.stringify(ids));
    else print(ids.map((id) => (flags.string ? JSON.stringify(id) : id)).join('\n'));
  } finally {
    await flake[ASYNC_DISPOSE]();
  }
}

module.exports = { help, options, run };
