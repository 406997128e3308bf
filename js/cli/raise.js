'use strict';
// `snowdrift raise`

const { LIMITS } = require('../lease/namespace.js');
const namespaces = require('./namespace.js');
const { URL_HELP } = require('./store-url.js');

const help = `Usage: snowdrift raise URL [--ttl MS] [--max-clock-skew MS] [--max-ahead MS]

Raises the limits that a namespace sets its holders. After a loss, new holders wait for the sum of the three.
Restart running holders before you start any with larger ones: they read the limits when they take a slot.
Limits never fall, since holders may use them in full. For smaller ones, use another namespace with another
datacenter ID.

${URL_HELP}
${namespaces.LIMIT_HELP}
  --json                prints one object`;

const options = namespaces.LIMIT_OPTIONS;

async function run(flags, positionals, { show, usage }) {
  const url = namespaces.readNamespaceUrl('raise', positionals, usage);
  const limits = namespaces.readLimitFlags(flags);
  const names = Object.keys(limits);
  const allFlags = Object.values(LIMITS).map((flag) => `--${flag}`);
  if (names.length === 0) throw usage(`raise needs ${allFlags.join(' or ')}`);
  const record = await namespaces.withStore(url, async (name, calls) => {
    const found = await namespaces.readRecord(calls);
    if (found !== undefined) return calls.call('raise', { namespace: found.id, ...limits });
    throw namespaces.noRecordError(name, 'Its first holder creates it, or snowdrift create does');
  });
  const lower = names.filter((name) => limits[name] < record[name]);
  const notes = lower.map((name) => `${name} stays ${record[name]} ms: it is never lowered.`);
  namespaces.showRecord(show, record, notes);
}

module.exports = { help, options, run };
