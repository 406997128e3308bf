'use strict';
// `snowdrift recover`

const { performance } = require('node:perf_hooks');

const { SnowFlakeError, moment } = require('../errors.js');
const { LAYOUT_HELP } = require('./flags.js');
const {
  LAYOUT,
  TERMS,
  TERM_HELP,
  TERM_OPTIONS,
  asJson,
  checkedTerms,
  endOf,
  givenLayout,
  givenTerms,
  namespaceUrl,
  newId,
  noNamespace,
  recorded,
  rows,
  tickAfter,
  withStore,
} = require('./namespace.js');
const { URL_HELP } = require('./place.js');

/** How far off a store's clock may be read: etcd tells whole seconds. */
const COARSE_MS = 500;

const help = `Usage: snowdrift recover URL [options]

Lifts the floor of a namespace above everything that its holders can have issued. Run it after a store was
restored from a backup, a replica that lagged was promoted, or tables, keys or nodes were deleted, before
new holders come. Running it once more than needed costs a wait and nothing else.

The floor is the store's clock + ttl + maxClockSkew + maxAhead as recorded. Where larger ones were in force
later than the backup, give them. Where the record is gone, all four are needed and it is created anew.

${URL_HELP}
${TERM_HELP}
  --json                one object; the floor in Unix ms
${LAYOUT_HELP}`;

const options = { ...LAYOUT, ...TERM_OPTIONS };

async function run(flags, positionals, { print, usage }) {
  const url = namespaceUrl('recover', positionals, usage);
  const terms = givenTerms(flags);
  const isLayoutNamed = flags.layout !== undefined || flags.epoch !== undefined;
  const key = isLayoutNamed ? givenLayout(flags) : undefined;
  const missing = Object.entries(TERMS).filter(([term]) => terms[term] === undefined);
  const needed = missing.map(([, flag]) => `--${flag}`);
  if (!isLayoutNamed) needed.unshift('--layout');

  const namespace = await withStore(url, async (store) => {
    const found = await recorded(store);
    if (found === undefined && needed.length > 0) {
      throw noNamespace(
        store.name,
        `Say what its holders had: ${needed.join(', ')}; too small a number lets IDs repeat. If no namespace was ever there, there is nothing to recover`,
      );
    }
    if (found !== undefined && key !== undefined) sameLayout(store.name, found.layout, key);
    return lift(store, found ?? { layout: key, ...checkedTerms(terms) }, terms);
  });
  const until = endOf(namespace.layout, namespace.floor);
  if (flags.json) print(JSON.stringify(asJson(namespace), undefined, 2));
  else
    print([...rows(namespace), '', `The first IDs have times after ${moment(until)}.`].join('\n'));
}

function sameLayout(name, found, key) {
  if (found === key) return;
  throw new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} is for IDs of another layout or epoch: ${found}, and not ${key}. Leave out --layout and --epoch, or name its own`,
  );
}

/** Raises the floor of what was found, or of what another process has created meanwhile. */
async function lift({ name, call }, found, given) {
  const { ttl, maxClockSkew, maxAhead } = larger(found, given);
  const asked = performance.now();
  const unixMs = await call('now', { ttl });
  const latest = unixMs + (performance.now() - asked) + COARSE_MS;
  const floor = tickAfter(found.layout, latest + ttl + maxClockSkew + maxAhead);
  const record = { layout: found.layout, ttl, maxClockSkew, maxAhead, floor };
  let { id } = found;
  if (id === undefined) {
    const created = await call('open', { id: newId(), ...record });
    sameLayout(name, created.layout, found.layout);
    ({ id } = created);
  }
  return call('raise', { namespace: id, ttl, maxClockSkew, maxAhead, floor });
}

const larger = (found, given) =>
  Object.fromEntries(
    Object.keys(TERMS).map((term) => [term, Math.max(found[term], given[term] ?? 0)]),
  );

module.exports = { help, options, run };
