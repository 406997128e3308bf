'use strict';
// `snowdrift create`

const { SnowFlakeError } = require('../errors.js');
const { LAYOUT_HELP } = require('./flags.js');
const {
  LAYOUT,
  TERM_HELP,
  TERM_OPTIONS,
  asJson,
  checkedTerms,
  givenLayout,
  givenTerms,
  namespaceUrl,
  newId,
  recorded,
  rows,
  withStore,
} = require('./namespace.js');
const { URL_HELP } = require('./place.js');

const help = `Usage: snowdrift create URL --new [options]

Creates a namespace ahead of its first holder, without a floor. Redis can lose a namespace by itself, so the
first holder of a missing one waits there for ttl + maxClockSkew + maxAhead; create saves that wait. With
--new you confirm that no namespace of this name has ever issued IDs of this layout. If one did, its IDs can
be issued again. It refuses a namespace that exists.

${URL_HELP}
  --new                 required
${TERM_HELP}
                        (defaults: those of a lease)
  --json                one object
${LAYOUT_HELP}`;

const options = { ...LAYOUT, ...TERM_OPTIONS, new: { type: 'boolean' } };

async function run(flags, positionals, { print, usage }) {
  const url = namespaceUrl('create', positionals, usage);
  if (flags.new !== true) {
    throw usage(
      'create needs --new, which confirms that no namespace of this name has ever issued IDs. After one was lost, use snowdrift recover',
    );
  }
  const terms = checkedTerms(givenTerms(flags));
  const layout = givenLayout(flags);
  const namespace = await withStore(url, async (store) => {
    const id = newId();
    const found =
      (await recorded(store)) ?? (await store.call('open', { id, layout, ...terms, floor: -1 }));
    if (found.id === id) return found;
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_STORE',
      `${store.name} exists already, with the ID ${found.id}: leases can use it as it is. snowdrift raise raises its limits`,
    );
  });
  if (flags.json) print(JSON.stringify(asJson(namespace), undefined, 2));
  else print(rows(namespace).join('\n'));
}

module.exports = { help, options, run };
