'use strict';
// The records of a namespace as texts: what src/lease/record writes, read and written by other code.

const { randomBytes } = require('node:crypto');

const newToken = (bytes = 8) => randomBytes(bytes).toString('hex');

/** The line of a worker ID as it stands in a bucket's text. */
function readLine(line) {
  const [workerId, kind, owner, token, floor, ceiling, expires, ...rest] = line.split(' ');
  return {
    ...{ workerId: Number(workerId), kind, owner, token, floor: Number(floor) },
    ...{ ceiling: Number(ceiling), expires: Number(expires), rest: rest.join(' ') },
  };
}

const formatLine = ({ workerId, kind, owner, token, floor, ceiling, expires, rest }) =>
  [workerId, kind, owner, token, floor, ceiling, expires, rest].join(' ');

/** The fields of a record's text: of a bucket, with a `slot` for each line. */
function readText(text) {
  const [first, ...lines] = text.split('\n');
  const [format, kind, id, floor] = first.split(' ');
  if (kind === 'bucket') {
    return { format, kind, id, floor: Number(floor), slots: lines.map(readLine) };
  }
  const values = Object.fromEntries(lines.map((line) => line.split(/ (.*)/s)));
  const [ttl, maxClockSkew, maxAhead] = values.limits.split(' ').map(Number);
  return {
    ...{ format, kind, id, layout: values.layout, limits: { ttl, maxClockSkew, maxAhead } },
    ...{ floor: Number(values.floor), size: Number(values.size), buckets: values.buckets },
  };
}

const formatBucket = ({ format, id, floor, slots }) =>
  [`${format} bucket ${id} ${floor}`, ...slots.map(formatLine)].join('\n');

/** The text of a namespace in which nobody ever held a slot. */
function namespaceText({ layout, ttl, maxClockSkew, maxAhead, floor = -1, size = 32 }) {
  const { timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits } = layout;
  const widths = [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits];
  return [
    `snowdrift2 namespace ${newToken()}`,
    `layout ${widths.join('.')} ${layout.tickMs} ${layout.epoch}`,
    `limits ${ttl} ${maxClockSkew} ${maxAhead}`,
    `floor ${floor}`,
    `size ${size}`,
    'buckets',
  ].join('\n');
}

module.exports = { formatBucket, namespaceText, newToken, readText };
