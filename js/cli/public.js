'use strict';
// `snowdrift public key`, `snowdrift public encode` and `snowdrift public decode`. The key comes from the environment,
// since other users of the machine see arguments in the process list.

/**
 * @import { FlagsOf } from './flags.js'
 * @import { CommandIo, Io } from './main.js'
 */

const { variable } = require('../messages/checks.js');
const { configError } = require('../messages/errors.js');
const { publicIds } = require('../public.js');
const { createKey, readKeys } = require('../public/key.js');
const { readArguments, withoutSuffix } = require('./input.js');

const VARIABLE = 'PUBLIC_ID_KEY';

const OPTIONS = /** @type {const} */ ({
  kind: { type: 'string' },
  prefix: { type: 'string' },
  'no-prefix': { type: 'boolean' },
});

const KEY_HELP = `The key is that of the environment variable ${VARIABLE}. It may hold several, separated by commas:
the first encodes, all decode.`;

const KIND_HELP = `  --kind KIND           such as order
  --prefix PREFIX       such as order_, the default for --kind order
  --no-prefix           without a prefix`;

/**
 * The publicIds() of a command's flags.
 * @param {string} command
 * @param {FlagsOf<typeof OPTIONS>} flags
 * @param {Io['usage']} usage
 */
function readPublicIds(command, { kind, prefix, 'no-prefix': hasNone }, usage) {
  if (kind === undefined) throw usage(`public ${command} needs --kind, such as --kind order`);
  if (prefix !== undefined && hasNone) {
    throw usage('--prefix and --no-prefix are both given: leave out one of them');
  }
  const text = variable(VARIABLE);
  if (text === undefined) {
    throw configError(
      `set the environment variable ${VARIABLE} to the key of the public IDs; npx snowdrift public key makes one`,
    );
  }
  const keys = text.split(',');
  // So that errors name the variable.
  readKeys(
    keys,
    (at) => `${keys.length === 1 ? '' : `key ${at + 1} of `}the environment variable ${VARIABLE}`,
  );
  const chosen = hasNone ? false : prefix;
  return publicIds({ kind, keys, ...(chosen !== undefined && { prefix: chosen }) });
}

const key = {
  help: `Usage: snowdrift public key [--json]

Makes a key for public IDs: 32 random bytes as base64. Keep it as you keep passwords.

  --json                prints it as JSON`,
  options: {},
  /**
   * @param {object} _flags
   * @param {string[]} positionals
   * @param {CommandIo} io
   */
  async run(_flags, positionals, { show, usage }) {
    // Does not show the argument, which may be a key.
    if (positionals.length > 0) throw usage('public key takes no argument');
    show(createKey(), String);
  },
};

const encode = {
  help: `Usage: snowdrift public encode --kind KIND ID... [options]

Encodes IDs as public IDs, one per line. Without an ID, it reads IDs from the standard input.
${KEY_HELP}

${KIND_HELP}
  --json                prints one array of strings`,
  options: OPTIONS,
  /**
   * @param {FlagsOf<typeof OPTIONS>} flags
   * @param {string[]} args
   * @param {CommandIo} io
   */
  async run(flags, args, { show, stdin, usage }) {
    const { encode } = readPublicIds('encode', flags, usage);
    const ids = (await readArguments(args, stdin, usage)).map(withoutSuffix);
    if (ids.length === 0) {
      throw usage(
        'public encode needs an ID: snowdrift public encode --kind order 900833463518117888',
      );
    }
    show(ids.map(encode), (texts) => texts.join('\n'));
  },
};

const decode = {
  help: `Usage: snowdrift public decode --kind KIND TEXT... [options]

Decodes public IDs, one per line. Without a text, it reads texts from the standard input.
${KEY_HELP}

${KIND_HELP}
  --json                prints one array of strings, since JSON has no 64-bit numbers`,
  options: OPTIONS,
  /**
   * @param {FlagsOf<typeof OPTIONS>} flags
   * @param {string[]} args
   * @param {CommandIo} io
   */
  async run(flags, args, { show, stdin, usage }) {
    const { decodeString } = readPublicIds('decode', flags, usage);
    const texts = await readArguments(args, stdin, usage);
    if (texts.length === 0) {
      throw usage('public decode needs a text: snowdrift public decode --kind order order_7k...');
    }
    show(texts.map(decodeString), (ids) => ids.join('\n'));
  },
};

module.exports = { decode, encode, key };
