'use strict';
// The node of a generator: datacenterId and workerId, from options or from the environment.

const { fieldNumber, numberIn } = require('../messages/checks.js');
const { environmentNames, environmentOf } = require('../runtime/environment.js');
const { configError, describe, fromCaller } = require('../messages/errors.js');
const { bitsOf } = require('../ids/layout-key.js');
const { layouts } = require('../ids/layouts.js');
const { isSameName } = require('../ids/names.js');

/** @import { Layout, NodeIds, Settings } from '../types.js' */
/** @typedef {{ [name in keyof NodeIds]?: number }} Fields */
/** @typedef {{ name: keyof NodeIds, max: number, text: string | undefined, other: string | undefined }} VariableFault */

/** @param {Fields} fields */
const entriesOf = (fields) => /** @type {[keyof NodeIds, number][]} */ (Object.entries(fields));

/**
 * The missing and invalid environment variables of a node, in the calling thread: `name`, `max` and `text` of each, and
 * `other`, a variable whose name differs only in case and separators.
 * @param {Fields} fields the bits of each field, by name
 * @returns {VariableFault[]}
 */
function faultsOfEnvironment(fields) {
  return entriesOf(fields).flatMap(([name, bits]) => {
    const text = environmentOf(name);
    const max = 2 ** bits - 1;
    if (numberIn(text) <= max) return [];
    const other = environmentNames().find((one) => one !== name && isSameName(one, name));
    return [{ name, max, text, other }];
  });
}

/**
 * Values for examples in messages.
 * @type {NodeIds}
 */
const EXAMPLES = { datacenterId: 1, workerId: 3 };

/**
 * The message for a missing or invalid variable.
 * @param {VariableFault} fault
 * @param {Layout} layout
 */
function wordFault({ name, max, text, other }, layout) {
  const [named] = Object.entries(layouts).find(([, one]) => one === layout) ?? [];
  const takes = `layout ${named === undefined ? bitsOf(layout) : `'${named}'`} takes 0 to ${max}`;
  if (text !== undefined) return `the environment variable ${name} is ${describe(text)}; ${takes}`;
  const hint =
    other === undefined ? '' : `; the variable ${other} is, but names are case-sensitive`;
  return `${name} is not set, neither as an option nor in the environment (a whole decimal number; ${takes}${hint})`;
}

/** A hint for errors in a worker thread, which lacks the other threads' default instance. '' in the main thread. */
function ofThread() {
  const { isMainThread } = require('node:worker_threads');
  return isMainThread
    ? ''
    : ' This is a worker thread, which has a default instance of its own: SnowFlake.configure(), use() and ready() in another thread do not set it.';
}

/**
 * @param {VariableFault[]} faults
 * @param {Fields} fields the bits of each field that the generator needs, by name
 * @param {Layout} layout
 */
function environmentError(faults, fields, layout) {
  const names = entriesOf(fields).flatMap(([name, bits]) => (bits > 0 ? [name] : []));
  const found = faults.map((fault) => wordFault(fault, layout)).join(', and ');
  const call = names.includes('workerId') ? 'SnowFlake.configure()' : 'SnowFlake.lease()';
  if (faults.every(({ text }) => text !== undefined)) {
    const message = `${found}. Correct it, or pass a number to the constructor or ${call}`;
    return fromCaller(configError(message), environmentError);
  }
  const both = faults.length > 1 ? 'both' : 'it';
  const [before, after] = process.platform === 'win32' ? ['$env:', ';'] : ['', ''];
  const command = names.map((name) => `${before}${name}=${EXAMPLES[name]}${after} `).join('');
  const properties = names.map((name) => `${name}: ${EXAMPLES[name]}`).join(', ');
  const error = configError(
    `${found}.${ofThread()} Set ${both} before the process starts, for example ${command}node server.js or ` +
      `cluster.fork({ ${properties} }), or pass ${both} to the constructor or ${call}`,
  );
  return fromCaller(error, environmentError);
}

/**
 * datacenterId and workerId, from the options or else from the calling thread's environment.
 * @param {{ [name in keyof NodeIds]?: unknown }} given
 * @param {Fields} fields the bits of each field that is needed, by name
 * @param {boolean} isUnique whether the worker ID alone identifies the node: a store leased it, or the options name it
 * @param {Layout} layout
 */
function readNode(given, fields, isUnique, layout) {
  /** @type {{ [name in keyof NodeIds]: number | undefined }} */
  const node = { datacenterId: undefined, workerId: undefined };
  /** @type {Fields} */
  const fromEnvironment = {};
  for (const [name, bits] of entriesOf(fields)) {
    if (given[name] !== undefined) node[name] = fieldNumber(name, given[name], bits);
    else if (bits === 0) node[name] = noBits(name, isUnique);
    else fromEnvironment[name] = bits;
  }
  const faults = faultsOfEnvironment(fromEnvironment);
  if (faults.length > 0) throw environmentError(faults, fields, layout);
  for (const [name] of entriesOf(fromEnvironment)) node[name] = Number(environmentOf(name));
  return /** @type {Pick<Settings, keyof NodeIds>} */ (node);
}

/**
 * 0, for a field that the layout has no bits for.
 * @param {keyof NodeIds} name
 * @param {boolean} isUnique
 */
function noBits(name, isUnique) {
  const text = environmentOf(name);
  if (isUnique || text === undefined || text === '0') return 0;
  throw configError(
    `the environment variable ${name} holds ${describe(text)}, and the layout has no bits for it: processes that ` +
      `differ only in ${name} would issue duplicates. Unset it, pass ${name}: 0, or use a layout with bits for it`,
  );
}

module.exports = { ofThread, readNode };
