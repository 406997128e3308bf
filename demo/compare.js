'use strict';
// Compares all IDs that were drawn with each other, and decodes each.

const { SnowFlake } = require('snowdrift');

const { Progress } = require('./output.js');

/** A line that is not the one way to write a number. */
const NOT_CANONICAL = /^(?![1-9]\d*$).*$/m;

function unpack(kind, packed) {
  if (kind === 'BigInt') return packed;
  const text = Buffer.from(packed).toString('latin1');
  const wrong = NOT_CANONICAL.exec(text);
  if (wrong !== null) throw new Error(`'${wrong[0]}' is not how an ID is written`);
  return BigUint64Array.from(text.split('\n'), BigInt);
}

/** Equal IDs are neighbours once they are sorted. */
function countDuplicates(ids) {
  const sorted = ids.slice().sort();
  let duplicates = 0;
  for (let i = 1; i < sorted.length; i++) if (sorted[i] === sorted[i - 1]) duplicates++;
  return duplicates;
}

/**
 * @param drawn of drawTogether(). Each gets `last`, the fields of its last ID
 * @param visit called with the name of a process and each ms in which it drew
 * @returns how many IDs there are, how many of them were there before, and how many do not decode to their node and
 *   to a time from `start` to now
 */
async function compare(drawn, { datacenterId, start, visit = () => {} }) {
  const end = Date.now();
  const total = drawn.reduce((sum, { length }) => sum + length, 0);
  const all = new BigUint64Array(total);
  const progress = new Progress(['decoded'], total);
  let [done, wrong] = [0, 0];
  for (const one of drawn) {
    let ms;
    for (const packed of one.ids) {
      const ids = unpack(one.kind, packed);
      all.set(ids, done);
      done += ids.length;
      for (const id of ids) {
        const fields = SnowFlake.parse(id);
        const isOwn = fields.datacenterId === datacenterId && fields.workerId === one.workerId;
        if (!isOwn || fields.timestamp < start || fields.timestamp > end) wrong++;
        if (fields.timestamp !== ms) visit(one.name, fields.timestamp);
        ms = fields.timestamp;
        one.last = fields;
      }
      progress.set(0, done);
      // Else Ctrl+C would wait for the end.
      await new Promise(setImmediate);
    }
  }
  return { total, duplicates: countDuplicates(all), wrong };
}

module.exports = { compare, countDuplicates };
