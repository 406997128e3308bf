#!/usr/bin/env node
'use strict';
// `npx snowdrift`: runs a command. Exit codes: 0 success, 1 failure, 2 wrong usage or options.

const { inspect, parseArgs } = require('node:util');

const { environmentOf } = require('../runtime/environment.js');
const { SnowFlakeError, isMissing } = require('../messages/errors.js');
const { nameMeant } = require('../ids/names.js');
const { hideKeys } = require('../public/hidden.js');
const { printable, redact, redactForeign, sanitize } = require('../messages/secrets.js');
const { applyLeaseFile } = require('./store-url.js');
const { leavePlain, paint } = require('./terminal.js');
const { NONE } = require('../ids/properties.js');

const COMMANDS = {
  next: () => require('./next.js'),
  parse: () => require('./parse.js'),
  layout: () => require('./layout.js'),
  slots: () => require('./slots.js'),
  reset: () => require('./reset.js'),
  serve: () => require('./serve.js'),
  'namespace create': () => require('./create.js'),
  'namespace raise': () => require('./raise.js'),
  'namespace recover': () => require('./recover.js'),
  'namespace tables': () => require('./tables.js'),
  'public key': () => require('./public.js').key,
  'public encode': () => require('./public.js').encode,
  'public decode': () => require('./public.js').decode,
};

/** By the first word of commands of two: what each does. */
const GROUPS = {
  namespace: `  namespace create    creates a namespace ahead of its first holder
  namespace raise     raises the ttl, maxClockSkew or maxAhead that a namespace allows
  namespace recover   raises the floor of a namespace after a restore or a loss
  namespace tables    prints the table of leases and its least rights, for a migration`,
  public: `  public key          makes a key for public IDs
  public encode       encodes IDs as public IDs
  public decode       decodes public IDs`,
};

const HELP = `Usage: snowdrift <command> [options]

  next     generates IDs
  parse    decodes IDs
  layout   shows the capacity of a layout
  slots    lists worker IDs and their holders
  reset    makes a slot or page usable after a wrong clock
  serve    serves IDs by HTTP, for services in other languages

${Object.values(GROUPS).join('\n\n')}

  snowdrift help <command> shows its options, snowdrift --version the version.
  Each command has --json. Output is coloured on a terminal, unless NO_COLOR is set.`;

const helpOf = (group) => `Usage: snowdrift ${group} <command> [options]

${GROUPS[group]}

  snowdrift help ${group} <command> shows its options. Each command has --json.`;

class UsageError extends Error {}

const isHelp = (text) => ['--help', '-h', 'help'].includes(text);
const isCommand = (name) => Object.hasOwn(COMMANDS, name);
const isGroup = (name) => Object.hasOwn(GROUPS, name);

/**
 * @param given it may be a key, by mistake
 * @param group before it
 */
function noCommand(given, args, group) {
  const within = group === undefined ? '' : `${group} `;
  const name = within + hideKeys(given);
  const names = Object.keys(COMMANDS).filter((one) => one.startsWith(within));
  // snowdrift create, snowdrift namespace slots
  const right = group === undefined ? `namespace ${name}` : given;
  if (isCommand(right)) {
    return new UsageError(`there is no command '${name}': write snowdrift ${right}`);
  }
  const ofTwo = args.map((arg, at) => `${arg} ${args[at + 1]}`);
  const isLater = (words) => isCommand(within + words);
  const later = given.startsWith('-') ? [...args, ...ofTwo].find(isLater) : undefined;
  if (later !== undefined) {
    const what = `${within}${later} ${hideKeys(given)}`;
    return new UsageError(`the command comes first: snowdrift ${what} ...`);
  }
  const words = group === undefined ? [...names, ...Object.keys(GROUPS)] : names;
  const meant = [nameMeant(name, words), `public ${name}`].filter((one) => words.includes(one));
  const hint = meant.length === 0 ? '' : ` Did you mean ${meant.join(' or ')}?`;
  return new UsageError(
    `there is no command '${name}'.${hint} The commands are ${names.join(', ')}, ${within}help`,
  );
}

/** Refuses what is given without a value, as a variable of a shell that is not set gives it. */
function checkNotEmpty(name, { values, positionals }) {
  const flag = Object.keys(values).find((one) => values[one] === '');
  if (flag === undefined && !positionals.includes('')) return;
  const what = flag === undefined ? `an argument of ${name}` : `--${flag}`;
  throw new UsageError(
    `${what} is empty: check that the variable it comes from is set, or leave it out`,
  );
}

/** Runs the command that arguments name, or prints a help. */
async function runNamed([name, ...args], io) {
  const { print } = io;
  if (['--version', '-v'].includes(name)) return print(require('../../package.json').version);
  if (name === undefined) return print(HELP);
  if (isHelp(name)) {
    // snowdrift help namespace create
    const words = args.filter((arg) => !isHelp(arg)).slice(0, 2);
    return words.length === 0 ? print(HELP) : await runNamed([...words, '--help'], io);
  }
  if (isGroup(name)) {
    const [second, ...rest] = args;
    if (second === undefined) return print(helpOf(name));
    if (isHelp(second)) {
      // snowdrift namespace help create
      const third = rest.find((arg) => !isHelp(arg));
      return third === undefined
        ? print(helpOf(name))
        : await runNamed([name, third, '--help'], io);
    }
    // snowdrift namespace create
    if (!isCommand(`${name} ${second}`)) throw noCommand(second, rest, name);
    return await run(`${name} ${second}`, rest, io);
  }
  if (!isCommand(name)) throw noCommand(name, args);
  return await run(name, args, io);
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
    // Without Node's advice on arguments that start with a dash.
    const said = message.replace(/\. To specify a positional.*$|\.$/s, '').replaceAll('\n', ' ');
    const what = hideKeys(said);
    const [, unknown] = /^Unknown option '--([^'=]+)/.exec(message) ?? [];
    const meant = unknown && nameMeant(unknown, Object.keys(options));
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

/** What commands read and say. */
function ioOf({ stdin, stdout, stderr }) {
  const isColoured = stdout.isTTY === true && !environmentOf('NO_COLOR');
  return {
    stdin,
    print: (text) => void stdout.write(`${redact(text)}\n`),
    /** Control characters are escaped: they may come from an argument. */
    complain: (text) => void stderr.write(`snowdrift: ${sanitize(text)}\n`),
    paint: isColoured ? paint : leavePlain,
    usage: (message) => new UsageError(message),
  };
}

/**
 * Runs a command, and reports why it fails. Throws only what no command is meant to.
 * @param streams `stdin`, `stdout` and `stderr`, as those of a process
 * @returns the exit code
 */
async function main(argv, streams) {
  const io = ioOf(streams);
  try {
    return (await runNamed(argv, io)) ?? 0;
  } catch (failure) {
    if (!(failure instanceof UsageError || failure instanceof SnowFlakeError)) throw failure;
    const code = failure.code === undefined ? '' : `${failure.code}: `;
    // npx without an installation runs a snowdrift in npm's cache, which finds no packages of the application.
    const where = isMissing(failure.cause ?? NONE)
      ? ', in the folder where you installed snowdrift'
      : '';
    io.complain(`${code}${failure.message}${where}`);
    return failure instanceof UsageError || failure.code === 'ERR_SNOWFLAKE_CONFIG' ? 2 : 1;
  }
}

/** Runs the command that this process is. */
async function runProcess() {
  // EPIPE: the reader has closed the pipe early, as `head` does.
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
