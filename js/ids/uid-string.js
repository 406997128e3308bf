'use strict';
// An ID as JSON, as UidGenerator's parseUID returns it.

const { argumentError, describe } = require('../messages/errors.js');
const { propertiesOf } = require('../messages/checks.js');
const { NONE } = require('./properties.js');

/** @import { Layout, ParsedId } from '../types.js' */

/**
 * The last time zone with its format, since creating one takes 50 us.
 * @type {{ timeZone: string, format: Intl.DateTimeFormat } | undefined}
 */
let last;

/**
 * yyyy-MM-dd HH:mm:ss in a time zone.
 * @param {string} timeZone
 */
function formatOf(timeZone) {
  if (timeZone === last?.timeZone) return last.format;
  const two = '2-digit';
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    ...{ year: 'numeric', month: two, day: two, hour: two, minute: two, second: two },
  });
  last = { timeZone, format };
  return format;
}

/**
 * @param {Pick<ParsedId, 'id' | 'date' | 'datacenterId' | 'workerId' | 'sequence'>} parsed the result of parse()
 * @param {Layout} layout the bits between timestamp and sequence count as one worker ID, as in UidGenerator
 * @param {unknown} [options]
 */
function uidString(parsed, layout, options = NONE) {
  const { timeZone = 'UTC' } = propertiesOf(options, 'options', ['timeZone'], argumentError);
  let format;
  try {
    if (typeof timeZone !== 'string') throw new TypeError('not a string');
    format = formatOf(timeZone);
  } catch (cause) {
    throw argumentError(
      `timeZone must be the IANA name of a time zone, such as 'Asia/Shanghai'; it is ${describe(timeZone)}`,
      { cause },
    );
  }
  const of = Object.fromEntries(
    format.formatToParts(parsed.date).map(({ type, value }) => [type, value]),
  );
  const year = of.year.padStart(4, '0');
  return JSON.stringify({
    UID: String(parsed.id),
    timestamp: `${year}-${of.month}-${of.day} ${of.hour}:${of.minute}:${of.second}`,
    workerId: String(parsed.datacenterId * 2 ** layout.workerBits + parsed.workerId),
    sequence: String(parsed.sequence),
  });
}

module.exports = { uidString };
