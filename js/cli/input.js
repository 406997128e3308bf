'use strict';
// Reads the IDs of a command, from its arguments or else from its standard input.

/**
 * @import { Io } from './main.js'
 */

/** The most characters of the standard input: about 100,000 IDs. */
const MOST_CHARACTERS = 2 ** 22;

/**
 * The arguments or, without any, the IDs of the standard input.
 * @param {string[]} args
 * @param {Io['stdin']} stdin
 * @param {Io['usage']} usage
 */
async function readArguments(args, stdin, usage) {
  return args.length === 0 && !stdin.isTTY ? await readInput(stdin, usage) : args;
}

/**
 * The IDs of the standard input, in the forms that snowdrift next prints: lines, or an array of strings.
 * @param {Io['stdin']} stdin
 * @param {Io['usage']} usage
 */
async function readInput(stdin, usage) {
  let text = '';
  try {
    for await (const part of stdin.setEncoding('utf8')) {
      text += part;
      if (text.length > MOST_CHARACTERS) break;
    }
  } catch (failure) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (failure);
    throw usage(`cannot read the standard input (${code}): pass the IDs as arguments`);
  }
  if (text.length > MOST_CHARACTERS) {
    throw usage('the standard input is longer than 4 MiB: pass fewer IDs at once');
  }
  return text.split(/[\s"[\],]+/).filter(Boolean);
}

/**
 * The digits of an ID, without the n of a bigint that Node prints.
 * @param {string} text
 */
function withoutSuffix(text) {
  return /^\d+n$/.test(text) ? text.slice(0, -1) : text;
}

module.exports = { readArguments, withoutSuffix };
