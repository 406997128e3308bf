#!/usr/bin/env node
'use strict';
// `npx snowdrift`: which command, and how it ends. 0: done; 1: it could not be done; 2: not understood.

const { parseArgs } = require('node:util');

const { SnowFlakeError } = require('../errors.js');

const COMMANDS = {
  next: () => require('./next.js'),
  parse: () => require('./parse.js'),
  layout: () => require('./layout.js'),
  slots: () => require('./slots.js'),
  reset: () => require('./reset.js'),
  recover: () => require('./recover.js'),
  create: () => require('./create.js'),
  raise: () => require('./raise.js'),
  serve: () => require('./serve.js'),
};

const HELP = `Usage: snowdrift <command> [options]

  next     draws IDs
  parse    takes IDs apart
  layout   what a cut of bits allows
  slots    who holds which worker ID
  reset    puts a slot of a directory right that a wrong clock made useless
  recover  lifts the floor of a namespace after a restore or a loss
  create   creates a namespace ahead of its first holder
  raise    raises the ttl, maxClockSkew or maxAhead that a namespace allows
  serve    gives IDs by HTTP, to services in other languages

  snowdrift <command> --help tells the rest, snowdrift --version the version.
  Each command knows --json. Colours only on a terminal, and not with NO_COLOR.`;

/** What was not understood. */
class UsageError extends Error {}

async function main([name, ...args]) {
  if (name === '--version') return print(require('../../package.json').version);
  if (name === undefined || name === '--help' || name === 'help') return print(HELP);
  if (!Object.hasOwn(COMMANDS, name)) {
    throw new UsageError(`there is no command '${name}': snowdrift --help lists them`);
  }
  const command = COMMANDS[name]();
  const options = { ...command.options, json: { type: 'boolean' }, help: { type: 'boolean' } };
  let read;
  try {
    read = parseArgs({ args, options, allowPositionals: true });
  } catch ({ message }) {
    throw new UsageError(`${message}. snowdrift ${name} --help tells the options`);
  }
  if (read.values.help) return print(command.help);
  await command.run(read.values, read.positionals, { print, usage });
}

function print(text) {
  process.stdout.write(`${text}\n`);
}

function usage(message) {
  return new UsageError(message);
}

// A pipe that is closed early, as by `head`, is no failure.
process.stdout.on('error', ({ code }) => process.exit(code === 'EPIPE' ? 0 : 1));

main(process.argv.slice(2)).catch((failure) => {
  if (!(failure instanceof UsageError || failure instanceof SnowFlakeError)) throw failure;
  const code = failure.code === undefined ? '' : `${failure.code}: `;
  process.stderr.write(`snowdrift: ${code}${failure.message}\n`);
  process.exitCode =
    failure instanceof UsageError || failure.code === 'ERR_SNOWFLAKE_CONFIG' ? 2 : 1;
});
