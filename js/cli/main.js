#!/usr/bin/env node
'use strict';
// `npx snowdrift`: runs a command. Exit codes: 0 success, 1 failure, 2 wrong usage or options.

/**
 * @import { ReadStream } from 'node:tty'
 * @import { ParseArgsConfig } from 'node:util'
 *
 * @typedef {NodeJS.ReadableStream & Partial<Pick<ReadStream, 'isTTY'>>} Input
 *
 * The input and output of commands.
 * @typedef {object} Io
 * @property {Input} stdin
 * @property {(text: string) => void} print escapes control characters, except between lines
 * @property {(text: string) => void} complain escapes control characters, which may come from an argument
 * @property {(message: string) => Error} usage the error of a wrong usage
 *
 * Prints a value as JSON with --json, else what `format` returns.
 * @typedef {<T>(value: T, format: (value: T) => string) => void} Show
 * @typedef {Io & { show: Show }} CommandIo
 *
 * @typedef {object} CliCommand
 * @property {string} help
 * @property {NonNullable<ParseArgsConfig['options']>} options
 * @property {(flags: Flags, positionals: string[], io: CommandIo) => Promise<void>} run
 *
 * @typedef {Record<string, string | boolean | undefined>} Flags
 * @typedef {{ values: Flags, positionals: string[] }} Arguments
 * @typedef {{ stdin: Input, stdout: Output, stderr: Output }} Streams like a process's
 * @typedef {{ write: (text: string) => unknown }} Output
 */

const { inspect, parseArgs } = require('node:util');

const { SnowFlakeError, isMissing } = require('../messages/errors.js');
const { suggestedName } = require('../ids/names.js');
const { hideKeys, showNoKey } = require('../public/hidden.js');
const { printable, redact, redactForeign, sanitize } = require('../messages/secrets.js');
const { applyLeaseFile } = require('./store-url.js');
const { NONE } = require('../ids/properties.js');

/**
 * The commands of each group, in the order of the help. Each has what it does.
 * @typedef {{ title: string, commands: Record<string, { does: string, load: () => CliCommand }> }} Group
 * @type {Record<string, Group>}
 */
const GROUPS = {
  ids: {
    title: 'IDs',
    commands: {
      next: { does: 'generates IDs', load: () => require('./next.js') },
      parse: {
        does: 'decodes IDs: time, datacenter and worker ID, sequence',
        load: () => require('./parse.js'),
      },
      layout: {
        does: 'shows the years, nodes and IDs per second of a layout',
        load: () => require('./layout.js'),
      },
    },
  },
  leases: {
    title: 'Leases and stores',
    commands: {
      slots: {
        does: 'shows who holds which worker ID, in a store or on this host',
        load: () => require('./slots.js'),
      },
      recover: {
        does: 'prevents duplicates after a restore or data loss; creates a namespace ahead',
        load: () => require('./recover.js'),
      },
      'namespace tables': {
        does: 'prints the SQL table of leases and its least rights, for a migration',
        load: () => require('./tables.js'),
      },
    },
  },
  serving: {
    title: 'Serving',
    commands: {
      serve: {
        does: 'serves IDs by HTTP, for services in other languages',
        load: () => require('./serve.js'),
      },
    },
  },
  public: {
    title: 'Public IDs',
    commands: {
      'public key': {
        does: 'makes a key for public IDs',
        load: () => require('./public.js').key,
      },
      'public encode': {
        does: 'encodes IDs as encrypted public IDs',
        load: () => require('./public.js').encode,
      },
      'public decode': {
        does: 'decodes public IDs',
        load: () => require('./public.js').decode,
      },
    },
  },
};

const COMMANDS = Object.assign({}, ...Object.values(GROUPS).map(({ commands }) => commands));

/** What users type for a group: its name, or the first word of one of its commands. */
const GROUP_OF = new Map(
  Object.entries(GROUPS).flatMap(([name, group]) => {
    const firsts = Object.keys(group.commands).flatMap((command) =>
      command.split(' ').slice(0, -1),
    );
    return [name, ...firsts].map((word) => /** @type {const} */ ([word, group]));
  }),
);

/** The most characters of a message of Node, which repeats an argument. */
const MOST_SAID = 200;

const USAGE = 'Usage: snowdrift <command> [options]';

function helpOfAll() {
  const sections = Object.values(GROUPS).map(({ title, commands }) => {
    const lines = Object.entries(commands).map(([name, { does }]) => `  ${name.padEnd(20)}${does}`);
    return [title, ...lines].join('\n');
  });
  return [
    USAGE,
    ...sections,
    `snowdrift help COMMAND shows its options, such as snowdrift help next. Each has --json.
snowdrift help GROUP shows the usage of its commands: ${Object.keys(GROUPS).join(', ')}.
snowdrift --version shows the version.`,
  ].join('\n\n');
}

/** @param {Group} group */
function helpOf({ title, commands }) {
  const usages = Object.values(commands).map(({ does, load }) => {
    const [, usage] = /^Usage: (.*)/.exec(load().help) ?? [];
    return `  ${usage}\n    ${does}`;
  });
  return [USAGE, `${title}:`, ...usages, 'snowdrift help COMMAND shows its options.'].join('\n\n');
}

/**
 * Lines with escaped control characters, which may come from names of files and from records. In JSON they mean the same.
 * @param {string} text
 */
const escapeLines = (text) => text.split('\n').map(printable).join('\n');

class UsageError extends Error {}

const isHelp = (/** @type {string} */ text) => ['--help', '-h', 'help'].includes(text);
const isCommand = (/** @type {string} */ name) => Object.hasOwn(COMMANDS, name);

/** @param {string} given the unknown command, which may be a key by mistake */
function noCommand(given) {
  if (given.startsWith('-')) return new UsageError('the command comes first: snowdrift next -n 5');
  const name = hideKeys(given);
  const names = Object.keys(COMMANDS);
  const lastOf = (/** @type {string} */ words) => words.split(' ').at(-1);
  const meant =
    names.find((one) => lastOf(one) === lastOf(name)) ??
    suggestedName(name, [...names, ...GROUP_OF.keys()]);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  return new UsageError(
    `there is no command ${showNoKey(given)}.${hint} The commands are ${names.join(', ')}, help`,
  );
}

/**
 * Refuses an empty argument, such as from an unset variable of a shell.
 * @param {string} name the command
 * @param {Arguments} read
 */
function checkNotEmpty(name, { values, positionals }) {
  const flag = Object.keys(values).find((one) => values[one] === '');
  if (flag === undefined && !positionals.includes('')) return;
  const what = flag === undefined ? `an argument of ${name}` : `--${flag}`;
  throw new UsageError(
    `${what} is empty: check that the variable it comes from is set, or leave it out`,
  );
}

/**
 * Runs the command that the arguments name, or prints help.
 * @param {string[]} argv
 * @param {Io} io
 */
async function runNamed(argv, io) {
  if (['--version', '-v'].includes(argv[0])) {
    return io.print(require('../../package.json').version);
  }
  // snowdrift help public key, snowdrift public help key, snowdrift public key help
  const most = isCommand(argv.slice(0, 2).join(' ')) ? 3 : 2;
  const at = argv.slice(0, most).findIndex(isHelp);
  const words = argv.filter((_, n) => n !== at);
  const name = [words.slice(0, 2).join(' '), words[0]].find(isCommand);
  if (name !== undefined) {
    return await run(name, at < 0 ? words.slice(name.split(' ').length) : ['--help'], io);
  }
  const [first, second] = words;
  if (first === undefined || isHelp(first)) return io.print(helpOfAll());
  const group = GROUP_OF.get(first);
  if (group !== undefined && (second === undefined || isHelp(second)))
    return io.print(helpOf(group));
  throw noCommand(group === undefined ? first : `${first} ${second}`);
}

/**
 * Runs a command, or prints its help.
 * @param {string} name
 * @param {string[]} args
 * @param {Io} io
 */
async function run(name, args, io) {
  const command = COMMANDS[name].load();
  /** @type {CliCommand['options']} */
  const options = {
    ...command.options,
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  };
  /** @type {Arguments} */
  let read;
  try {
    // No flag is declared as a list.
    read = /** @type {Arguments} */ (parseArgs({ args, options, allowPositionals: true }));
  } catch (failure) {
    const { message } = /** @type {Error} */ (failure);
    // Removes Node's advice on arguments that start with a dash.
    const said = message.replace(/\. To specify a positional.*$|\.$/s, '').replaceAll('\n', ' ');
    const what = hideKeys(said).slice(0, MOST_SAID);
    const [, unknown] = /^Unknown option '--([^'=]+)/.exec(message) ?? [];
    const meant = unknown && suggestedName(unknown, Object.keys(options));
    const hint = meant ? `Did you mean --${meant}?` : `snowdrift ${name} --help lists the options`;
    throw new UsageError(`${what}. ${hint}`);
  }
  if (read.values.help) return io.print(command.help);
  checkNotEmpty(name, read);
  /** @type {Show} */
  const show = (value, format) =>
    io.print(read.values.json ? JSON.stringify(value, undefined, 2) : format(value));
  await applyLeaseFile(read.values, read.positionals, io);
  await command.run(read.values, read.positionals, { ...io, show });
}

/**
 * The input and output of commands.
 * @param {Streams} streams
 * @returns {Io}
 */
function ioOf({ stdin, stdout, stderr }) {
  return {
    stdin,
    print: (text) => void stdout.write(`${escapeLines(redact(text))}\n`),
    complain: (text) => void stderr.write(`snowdrift: ${sanitize(text)}\n`),
    usage: (message) => new UsageError(message),
  };
}

/**
 * Runs a command, and reports its failure. Throws only unexpected errors.
 * @param {string[]} argv
 * @param {Streams} streams
 * @returns the exit code
 */
async function main(argv, streams) {
  const io = ioOf(streams);
  try {
    await runNamed(argv, io);
    return 0;
  } catch (failure) {
    if (!(failure instanceof UsageError || failure instanceof SnowFlakeError)) throw failure;
    const code = failure instanceof SnowFlakeError ? failure.code : undefined;
    const prefix = code === undefined ? '' : `${code}: `;
    // Without an installation, npx runs snowdrift from npm's cache, where it does not find the application's packages.
    const where = isMissing(failure.cause ?? NONE)
      ? ', in the folder where you installed snowdrift'
      : '';
    io.complain(`${prefix}${failure.message}${where}`);
    return failure instanceof UsageError || code === 'ERR_SNOWFLAKE_CONFIG' ? 2 : 1;
  }
}

/** Runs this process's command. */
async function runProcess() {
  // EPIPE: the reader closed the pipe early, as `head` does.
  process.stdout.on('error', ({ code }) => {
    if (code === 'EPIPE') process.exit(0);
    process.stderr.write(`snowdrift: cannot write the output (${code})\n`);
    process.exit(1);
  });
  try {
    process.exitCode = await main(process.argv.slice(2), process);
  } catch (failure) {
    process.stderr.write(`snowdrift: ${escapeLines(redactForeign(inspect(failure)))}\n`);
    process.exit(1);
  }
}

if (require.main === module) runProcess();

module.exports = { main };
