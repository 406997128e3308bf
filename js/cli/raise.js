'use strict';
// `snowdrift namespace raise`

const { LIMITS } = require('../messages/faults.js');
const namespaces = require('./namespace.js');
const { URL_HELP } = require('./store-url.js');

const help = `Usage: snowdrift namespace raise URL [--ttl MS] [--max-clock-skew MS] [--max-ahead MS]

Raises the limits that a namespace sets its holders. After a loss, new holders wait for the sum of the three.
Restart running holders before you start any with larger ones: they read the limits when they take a slot.
Limits never fall, since holders may use them in full. For smaller ones, use another namespace with another
datacenter ID.

${URL_HELP}
${namespaces.LIMIT_HELP}
  --json                prints one object`;

const options = namespaces.LIMIT_OPTIONS;

async function run(flags, positionals, { show, usage }) {
  const url = namespaces.readNamespaceUrl('namespace raise', positionals, usage);
  const limits = namespaces.readLimitFlags(flags);
  const names = Object.keys(limits);
  const allFlags = Object.values(LIMITS).map((flag) => `--${flag}`);
  if (names.length === 0) throw usage(`namespace raise needs ${allFlags.join(' or ')}`);
  const raised = await namespaces.withRecords(url, (records) =>
    records.change(
      (found) => ({ ...found, ...namespaces.largerLimits(found, limits) }),
      'Its first holder creates it, or snowdrift namespace create does',
    ),
  );
  const lower = names.filter((name) => limits[name] < raised[name]);
  const notes = lower.map((name) => `${name} stays ${raised[name]} ms: it is never lowered.`);
  namespaces.showNamespace(show, raised, notes);
}

module.exports = { help, options, run };
