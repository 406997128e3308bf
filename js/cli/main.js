#!/usr/bin/env node
'use strict';
// `npx snowdrift`: runs a command. Exit codes: 0 success, 1 failure, 2 wrong usage or options.

const { inspect, parseArgs } = require('node:util');

const { SnowFlakeError, isMissing } = require('../errors.js');
const { redact, redactForeign } = require('../secrets.js');
const { applyLeaseFile } = require('./store-url.js');

const COMMANDS = {
  next: () => require('./next.js'),
  parse: () => require('./parse.js'),
  layout: () => require('./layout.js'),
  sql: () => require('./sql.js'),
  slots: () => require('./slots.js'),
  reset: () => require('./reset.js'),
  recover: () => require('./recover.js'),
  create: () => require('./create.js'),
  raise: () => require('./raise.js'),
  serve: () => require('./serve.js'),
};

const HELP = `Usage: snowdrift <command> [options]

  next     draws IDs
  parse    decodes IDs
  layout   shows the capacity of a layout
  sql      prints SQL functions and partitions for IDs
  slots    lists worker IDs and their holders
  reset    makes a slot or page usable after a wrong clock
  recover  raises the floor of a namespace after a restore or a loss
  create   creates a namespace ahead of its first holder
  raise    raises the ttl, maxClockSkew or maxAhead that a namespace allows
  serve    serves IDs by HTTP, for services in other languages

  snowdrift <command> --help shows its options, snowdrift --version the version.
  Each command has --json. Output is coloured on a terminal, unless NO_COLOR is set.`;

class UsageError extends Error {}

async function main([name, ...args]) {
  if (['--version', '-v'].includes(name)) return print(require('../../package.json').version);
  if (name === undefined || ['--help', '-h', 'help'].includes(name)) return print(HELP);
  if (!Object.hasOwn(COMMANDS, name)) {
    const names = Object.keys(COMMANDS).join(', ');
    throw new UsageError(`there is no command '${name}'. The commands are ${names}, help`);
  }
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
    const what = message.replace(/\. To specify a positional.*$|\.$/s, '').replaceAll('\n', ' ');
    const unknown = /^Unknown option '--(\w+)'/.exec(message)?.[1];
    // As in the environment: datacenterId
    const meant = unknown?.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const hint = Object.hasOwn(options, meant)
      ? `It is --${meant}`
      : `snowdrift ${name} --help lists the options`;
    throw new UsageError(`${what}. ${hint}`);
  }
  if (read.values.help) return print(command.help);
  const show = (value, format) =>
    print(read.values.json ? JSON.stringify(value, undefined, 2) : format(value));
  applyLeaseFile(read.values, read.positionals, { complain, usage });
  await command.run(read.values, read.positionals, { complain, print, show, usage });
}

function print(text) {
  process.stdout.write(`${redact(text)}\n`);
}

function complain(text) {
  process.stderr.write(`snowdrift: ${redact(text)}\n`);
}

function usage(message) {
  return new UsageError(message);
}

// EPIPE: the reader has closed the pipe early, as `head` does.
process.stdout.on('error', ({ code }) => process.exit(code === 'EPIPE' ? 0 : 1));

main(process.argv.slice(2)).catch((failure) => {
  if (!(failure instanceof UsageError || failure instanceof SnowFlakeError)) {
    complain(redactForeign(inspect(failure)));
    process.exit(1);
  }
  const code = failure.code === undefined ? '' : `${failure.code}: `;
  // npx without an installation runs a snowdrift in npm's cache, which finds no packages of the application.
  const where = isMissing(failure.cause ?? {})
    ? ', in the folder where you installed snowdrift'
    : '';
  complain(`${code}${failure.message}${where}`);
  process.exitCode =
    failure instanceof UsageError || failure.code === 'ERR_SNOWFLAKE_CONFIG' ? 2 : 1;
});
