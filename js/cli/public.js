'use strict';
// `snowdrift public key`, `snowdrift public encode` and `snowdrift public decode`. The key comes from the environment:
// other users of a machine see arguments in the process list.

const { variable } = require('../messages/checks.js');
const { configError, invalidId } = require('../messages/errors.js');
const { publicIds } = require('../public.js');
const { showNoKey } = require('../public/hidden.js');
const { createKey, readKeys } = require('../public/key.js');
const { readArguments, withoutSuffix } = require('./input.js');

const VARIABLE = 'PUBLIC_ID_KEY';

const OPTIONS = {
  kind: { type: 'string' },
  prefix: { type: 'string' },
  'no-prefix': { type: 'boolean' },
};

const KEY_HELP = `The key is that of the environment variable ${VARIABLE}. It may hold several, separated by commas: the first
encodes, all decode.`;

/** The public IDs of a kind. */
function readPublicIds(flags, kind) {
  const text = variable(VARIABLE);
  if (text === undefined) {
    throw configError(
      `set the environment variable ${VARIABLE} to the key of the public IDs; npx snowdrift public key makes one`,
    );
  }
  const keys = text.split(',');
  // Errors name the variable.
  readKeys(
    keys,
    (at) => `${keys.length === 1 ? '' : `key ${at + 1} of `}the environment variable ${VARIABLE}`,
  );
  const prefix = flags['no-prefix'] ? false : flags.prefix;
  return publicIds({ kind, keys, ...(prefix !== undefined && { prefix }) });
}

function checkPrefix({ kind, prefix, 'no-prefix': hasNone }, usage) {
  if (prefix !== undefined && hasNone) {
    throw usage('--prefix and --no-prefix are both given: leave out one of them');
  }
  if (kind !== undefined && /[^\w-]/.test(kind) && prefix === undefined && !hasNone) {
    throw usage(
      '--kind has other characters than letters, digits, _ and -: also pass --prefix, such as --prefix order_, or --no-prefix',
    );
  }
}

const key = {
  help: `Usage: snowdrift public key [--json]

Makes a key for public IDs: 32 random bytes as base64. Keep it as you keep passwords.

  --json                prints it as JSON`,
  options: {},
  async run(_flags, positionals, { show, usage }) {
    // Not which: it may be a key.
    if (positionals.length > 0) throw usage('public key takes no argument');
    show(createKey(), String);
  },
};

const encode = {
  help: `Usage: snowdrift public encode --kind KIND ID... [options]

Encodes IDs as public IDs, one per line. Without an ID, it reads IDs from the standard input.
${KEY_HELP}

  --kind KIND           such as order
  --prefix PREFIX       such as order_, the default for --kind order
  --no-prefix           without a prefix
  --json                prints one array of strings`,
  options: OPTIONS,
  async run(flags, args, { show, stdin, usage }) {
    checkPrefix(flags, usage);
    if (flags.kind === undefined) throw usage('public encode needs --kind, such as --kind order');
    const ids = (await readArguments(args, stdin, usage)).map(withoutSuffix);
    if (ids.length === 0) {
      throw usage(
        'public encode needs an ID: snowdrift public encode --kind order 900833463518117888',
      );
    }
    show(ids.map(readPublicIds(flags, flags.kind).encode), (texts) => texts.join('\n'));
  },
};

/** The kind of a text: that of the flags, or what its default prefix names. */
function kindOf(flags, text, usage) {
  if (flags.kind !== undefined) return flags.kind;
  const hasPrefix = flags.prefix === undefined && !flags['no-prefix'];
  // The characters behind a prefix have no _.
  const isText = typeof text === 'string';
  const [, kind] = (isText && hasPrefix && /^([\w-]+)_[^_]*$/.exec(text)) || [];
  if (kind !== undefined) return kind;
  throw usage(
    'public decode needs --kind, such as --kind order, unless each text begins with its kind and _',
  );
}

const decode = {
  help: `Usage: snowdrift public decode TEXT... [options]

Decodes public IDs, one per line. Without a text, it reads texts from the standard input.
${KEY_HELP}

  --kind KIND           default: the text's prefix, without _ at its end
  --prefix PREFIX       such as order_, the default for --kind order
  --no-prefix           without a prefix
  --json                prints one array of strings, since JSON has no 64-bit numbers`,
  options: OPTIONS,
  async run(flags, args, { show, stdin, usage }) {
    checkPrefix(flags, usage);
    const texts = await readArguments(args, stdin, usage);
    if (texts.length === 0)
      throw usage('public decode needs a text: snowdrift public decode order_7k...');
    const kinds = new Map();
    const idsOf = (kind) => {
      if (!kinds.has(kind)) kinds.set(kind, readPublicIds(flags, kind));
      return kinds.get(kind);
    };
    const ids = texts.map((text) => {
      const kind = kindOf(flags, text, usage);
      try {
        return idsOf(kind).decodeString(text);
      } catch (error) {
        if (flags.kind !== undefined || error.code !== 'ERR_SNOWFLAKE_INVALID_ID') throw error;
        throw invalidId(
          `${error.message}. Its prefix says kind ${showNoKey(kind)}: for another one, pass --kind and --prefix`,
        );
      }
    });
    show(ids, () => ids.join('\n'));
  },
};

module.exports = { decode, encode, key };
