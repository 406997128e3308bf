'use strict';
// `snowdrift create`

const { SnowFlakeError } = require('../errors.js');
const { layoutKey } = require('../ids/layout-key.js');
const { layouts } = require('../ids/layouts.js');
const { newId } = require('../lease/namespace.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags } = require('./flags.js');
const namespaces = require('./namespace.js');
const { URL_HELP } = require('./store-url.js');

const help = `Usage: snowdrift create URL --new [options]

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
  const url = namespaces.readNamespaceUrl('create', positionals, usage);
  if (flags.new !== true) {
    throw usage(
      'create needs --new, which confirms that no namespace of this name has ever issued IDs. After a loss, use snowdrift recover',
    );
  }
  const limits = namespaces.withDefaultLimits(namespaces.readLimitFlags(flags));
  const layout = layoutKey(readLayoutFlags(flags) ?? layouts.node);
  const record = await namespaces.withStore(url, async (name, calls) => {
    const id = newId();
    const found =
      (await namespaces.readRecord(calls)) ??
      (await calls.call('open', { id, layout, ...limits, floor: -1 }));
    if (found.id === id) return found;
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_STORE',
      `${name} exists already, with the ID ${found.id}: leases can use it as it is. snowdrift raise raises its limits`,
    );
  });
  namespaces.showRecord(show, record);
}

module.exports = { help, options, run };
