'use strict';
// Suggests the intended name for a misspelt one: an option, a command, an environment variable. Needs no Node API.

/** @import { Show } from '../types.js' */

/** Longer names were not typed by hand. */
const MOST_CHARACTERS = 40;

/**
 * A name without case and separators: datacenterId of DATACENTER_ID.
 * @type {(name: string) => string}
 */
const bare = (name) => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/** @type {(one: string, other: string) => boolean} */
const isSameName = (one, other) => bare(one) === bare(other);

/**
 * The number of characters inserted, deleted or replaced.
 * @param {string} one
 * @param {string} other
 */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const replaced = row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j] + 1, next[j - 1] + 1));
    }
    row = next;
  }
  return row[other.length];
}

/**
 * The intended name of a list; undefined if none is similar.
 * @param {string} name
 * @param {readonly string[]} names
 */
function suggestedName(name, names) {
  if (name.length > MOST_CHARACTERS) return undefined;
  const given = bare(name);
  const found = names.find((one) => isSameName(one, name));
  if (found !== undefined) return found;
  // At most a third of the characters, so that short names are not confused.
  const most = Math.min(2, Math.floor(given.length / 3));
  const near = names.map((one) => ({ one, far: distance(given, bare(one)) }));
  near.sort((a, b) => a.far - b.far);
  return near[0]?.far <= most ? near[0].one : undefined;
}

/**
 * The message for a name that is not in a list.
 * @param {string} what what the names belong to, such as "options"
 * @param {string} name
 * @param {readonly string[]} names
 * @param {Show} show returns a value as text, without secrets
 */
function noSuchName(what, name, names, show) {
  const meant = suggestedName(name, names);
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
  return `${what} has no ${show(name)}.${hint} It knows ${names.join(', ')}`;
}

module.exports = { isSameName, suggestedName, noSuchName };
