#!/usr/bin/env node
'use strict';
// `npx snowdrift`: runs a command. Exit codes: 0 success, 1 failure, 2 wrong usage or options.

const { inspect, parseArgs } = require('node:util');

const { SnowFlakeError, isMissing } = require('../messages/errors.js');
const { suggestedName } = require('../ids/names.js');
const { hideKeys } = require('../public/hidden.js');
const { printable, redact, redactForeign, sanitize } = require('../messages/secrets.js');
const { applyLeaseFile } = require('./store-url.js');
const { NONE } = require('../ids/properties.js');

const COMMANDS = {
  next: () => require('./next.js'),
  parse: () => require('./parse.js'),
  layout: () => require('./layout.js'),
  slots: () => require('./slots.js'),
  recover: () => require('./recover.js'),
  serve: () => require('./serve.js'),
  'namespace tables': () => require('./tables.js'),
  'public key': () => require('./public.js').key,
  'public encode': () => require('./public.js').encode,
  'public decode': () => require('./public.js').decode,
};

const HELP = `Usage: snowdrift <command> [options]

  next                generates IDs
  parse               decodes IDs
  layout              shows the capacity of a layout
  slots               lists worker IDs and their holders
  recover             raises the floor of a namespace after a restore or a loss, or creates one ahead
  serve               serves IDs by HTTP, for services in other languages

  namespace tables    prints the table of leases and its least rights, for a migration

  public key          makes a key for public IDs
  public encode       encodes IDs as public IDs
  public decode       decodes public IDs

  snowdrift help <command> shows its options, snowdrift --version the version. Each command has --json.`;

class UsageError extends Error {}

const isHelp = (text) => ['--help', '-h', 'help'].includes(text);
const isCommand = (name) => Object.hasOwn(COMMANDS, name);

/** The first words of commands of two words. */
const GROUPS = ['namespace', 'public'];

function helpOf(group) {
  const commands = HELP.split('\n').filter((line) => line.startsWith(`  ${group} `));
  return `Usage: snowdrift ${group} <command> [options]\n\n${commands.join('\n')}`;
}

/** @param given the unknown command, which may be a key by mistake */
function noCommand(given) {
  if (given.startsWith('-')) return new UsageError('the command comes first: snowdrift next -n 5');
  const name = hideKeys(given);
  const names = Object.keys(COMMANDS);
  const lastOf = (words) => words.split(' ').at(-1);
  const meant =
    names.find((one) => lastOf(one) === lastOf(name)) ?? suggestedName(name, [...names, ...GROUPS]);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  return new UsageError(
    `there is no command '${name}'.${hint} The commands are ${names.join(', ')}, help`,
  );
}

/** Refuses an empty argument, such as from an unset variable of a shell. */
function checkNotEmpty(name, { values, positionals }) {
  const flag = Object.keys(values).find((one) => values[one] === '');
  if (flag === undefined && !positionals.includes('')) return;
  const what = flag === undefined ? `an argument of ${name}` : `--${flag}`;
  throw new UsageError(
    `${what} is empty: check that the variable it comes from is set, or leave it out`,
  );
}

/** Runs the command that the arguments name, or prints help. */
async function runNamed(argv, io) {
  if (['--version', '-v'].includes(argv[0])) {
    return io.print(require('../../package.json').version);
  }
  // snowdrift help public key, snowdrift public help key
  const at = argv.slice(0, 2).findIndex(isHelp);
  const words = argv.filter((_, n) => n !== at);
  const name = [words.slice(0, 2).join(' '), words[0]].find(isCommand);
  if (name !== undefined) {
    return await run(name, at < 0 ? words.slice(name.split(' ').length) : ['--help'], io);
  }
  const [first, second] = words;
  if (first === undefined || isHelp(first)) return io.print(HELP);
  const isGroup = GROUPS.includes(first);
  if (isGroup && (second === undefined || isHelp(second))) return io.print(helpOf(first));
  throw noCommand(isGroup ? `${first} ${second}` : first);
}

/** Runs a command, or prints its help. Returns its exit code, or undefined for success. */
async function run(name, args, io) {
  const command = COMMANDS[name]();
  const options = {
    ...command.options,
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  };
  let read;
  try {
    read = parseArgs({ args, options, allowPositionals: true });
  } catch ({ message }) {
    // Removes Node's advice on arguments that start with a dash.
    const said = message.replace(/\. To specify a positional.*$|\.$/s, '').replaceAll('\n', ' ');
    const what = hideKeys(said);
    const [, unknown] = /^Unknown option '--([^'=]+)/.exec(message) ?? [];
    const meant = unknown && suggestedName(unknown, Object.keys(options));
    const hint = meant ? `Did you mean --${meant}?` : `snowdrift ${name} --help lists the options`;
    throw new UsageError(`${what}. ${hint}`);
  }
  if (read.values.help) return io.print(command.help);
  checkNotEmpty(name, read);
  const show = (value, format) =>
    io.print(read.values.json ? JSON.stringify(value, undefined, 2) : format(value));
  await applyLeaseFile(read.values, read.positionals, io);
  return await command.run(read.values, read.positionals, { ...io, show });
}

/** The input and output of commands. */
function ioOf({ stdin, stdout, stderr }) {
  return {
    stdin,
    print: (text) => void stdout.write(`${redact(text)}\n`),
    /** Escapes control characters, which may come from an argument. */
    complain: (text) => void stderr.write(`snowdrift: ${sanitize(text)}\n`),
    usage: (message) => new UsageError(message),
  };
}

/**
 * Runs a command, and reports its failure. Throws only unexpected errors.
 * @param streams `stdin`, `stdout` and `stderr`, like a process's
 * @returns the exit code
 */
async function main(argv, streams) {
  const io = ioOf(streams);
  try {
    return (await runNamed(argv, io)) ?? 0;
  } catch (failure) {
    if (!(failure instanceof UsageError || failure instanceof SnowFlakeError)) throw failure;
    const code = failure.code === undefined ? '' : `${failure.code}: `;
    // Without an installation, npx runs snowdrift from npm's cache, where it does not find the application's packages.
    const where = isMissing(failure.cause ?? NONE)
      ? ', in the folder where you installed snowdrift'
      : '';
    io.complain(`${code}${failure.message}${where}`);
    return failure instanceof UsageError || failure.code === 'ERR_SNOWFLAKE_CONFIG' ? 2 : 1;
  }
}

/** Runs this process's command. */
async function runProcess() {
  // EPIPE: the reader closed the pipe early, as `head` does.
  process.stdout.on('error', ({ code }) => process.exit(code === 'EPIPE' ? 0 : 1));
  try {
    process.exitCode = await main(process.argv.slice(2), process);
  } catch (failure) {
    const lines = redactForeign(inspect(failure)).split('\n').map(printable);
    process.stderr.write(`snowdrift: ${lines.join('\n')}\n`);
    process.exit(1);
  }
}

if (require.main === module) runProcess();

module.exports = { main };
