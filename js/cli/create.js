'use strict';
// `snowdrift namespace create`

const { SnowFlakeError } = require('../messages/errors.js');
const { layouts } = require('../ids/layouts.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags } = require('./flags.js');
const namespaces = require('./namespace.js');
const { URL_HELP } = require('./store-url.js');

const help = `Usage: snowdrift namespace create URL --new [options]

Creates a namespace ahead of its first holder, without a floor. Redis can lose a namespace, so the first
holder of a missing one waits there for ttl + maxClockSkew + maxAhead; create saves that wait. With --new
you confirm that no namespace of this name has ever issued IDs of this layout. If one did, its IDs can be
issued again. It refuses a namespace that exists.

${URL_HELP}
  --new                 required
${namespaces.LIMIT_HELP}
                        (default: those of a lease)
  --json                prints one object
${LAYOUT_HELP}`;

const options = { ...LAYOUT_OPTIONS, ...namespaces.LIMIT_OPTIONS, new: { type: 'boolean' } };

async function run(flags, positionals, { show, usage }) {
  const url = namespaces.readNamespaceUrl('namespace create', positionals, usage);
  if (flags.new !== true) {
    throw usage(
      'namespace create needs --new, which confirms that no namespace of this name has ever issued IDs. After a loss, use snowdrift namespace recover',
    );
  }
  const limits = namespaces.withDefaultLimits(namespaces.readLimitFlags(flags));
  const layout = readLayoutFlags(flags) ?? layouts.node;
  const namespace = { id: namespaces.newId(), layout, ...limits };
  const created = await namespaces.withRecords(url, (records) => create(records, namespace));
  namespaces.showNamespace(show, created);
}

/**
 * Creates it in two writes. The first one may be late, when others have issued IDs and their records were lost: so it says
 * that IDs may have been issued. The second one replaces that very record.
 */
async function create(records, namespace) {
  const present = await records.read();
  if (present !== undefined) throw existsError(records, present);
  let { isWritten, found } = await records.write({ ...namespace, floor: 'lost' }, undefined);
  if (isWritten) ({ found } = await records.write({ ...namespace, floor: -1 }, found.token));
  // If a holder was faster with the floor, its floor holds.
  if (found?.id === namespace.id) return found;
  if (found !== undefined) throw existsError(records, found);
  throw await records.missing('It was deleted meanwhile: run the command again');
}

function existsError({ name }, { id }) {
  return new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} exists already, with the ID ${id}: leases can use it as it is. snowdrift namespace raise raises its limits`,
  );
}

module.exports = { create, help, options, run };
