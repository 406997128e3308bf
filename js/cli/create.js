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

Creates a namespace ahead of its first holder, without a floor. Redis can lose a namespace by itself, so its
first holder waits for ttl + maxClockSkew + maxAhead, unless the namespace was created so. --new is your word
that none of this name ever issued IDs with this layout: if one did, its IDs are issued again. It refuses
where a namespace is recorded.

${URL_HELP}
  --new                 needed
${TERM_HELP}
                        (defaults: those of a lease)
  --json                one object
${LAYOUT_HELP}`;

const options = { ...LAYOUT, ...TERM_OPTIONS, new: { type: 'boolean' } };

async function run(flags, positionals, { print, usage }) {
  const url = namespaceUrl('create', positionals, usage);
  if (flags.new !== true) {
    throw usage(
      'create needs --new: your word that no namespace of this name ever issued IDs. After one was lost, use snowdrift recover',
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
      `${store.name} is there already, with the ID ${found.id}: it is used as it is. snowdrift raise raises what it allows its holders`,
    );
  });
  if (flags.json) print(JSON.stringify(asJson(namespace), undefined, 2));
  else print(rows(namespace).join('\n'));
}

module.exports = { help, options, run };
