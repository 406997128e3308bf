'use strict';
// `snowdrift next`

/**
 * @import { FlagsOf } from './flags.js'
 * @import { CommandIo } from './main.js'
 */

const { describe } = require('../messages/errors.js');
const { NODE_HELP, NODE_OPTIONS, openGenerator, readWholeNumber } = require('./flags.js');

const MAX_COUNT = 1_000_000;

const help = `Usage: snowdrift next [-n COUNT] [--base32] [options]

Generates IDs, one per line. All processes of one user with one worker ID share one sequence.

Output:
  -n COUNT              1 to ${MAX_COUNT}, default 1
  --base32              prints IDs as 13 characters that sort as the IDs do
  --json                prints one array of strings, since JSON has no 64-bit numbers

${NODE_HELP}`;

const options = /** @type {const} */ ({
  ...NODE_OPTIONS,
  count: { type: 'string', short: 'n' },
  base32: { type: 'boolean' },
});

/**
 * @param {FlagsOf<typeof options>} flags
 * @param {string[]} positionals
 * @param {CommandIo} io
 */
async function run(flags, positionals, { print, usage }) {
  if (positionals.length > 0) {
    const [text] = positionals;
    const hint = /^\d+$/.test(text) ? `: -n ${text} generates that many IDs` : '';
    throw usage(`next takes no argument; remove ${describe(text)}${hint}`);
  }
  const count = readWholeNumber('-n', flags.count, 1, MAX_COUNT) ?? 1;
  const flake = await openGenerator(flags, { maxWait: 1000 });
  try {
    const ids = flags.base32
      ? Array.from({ length: count }, () => flake.nextIdBase32())
      : flake.nextIdStrings(count);
    print(flags.json ? JSON.stringify(ids) : ids.join('\n'));
  } finally {
    await flake.close();
  }
}

module.exports = { help, options, run };
