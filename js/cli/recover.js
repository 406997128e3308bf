'use strict';
// `snowdrift recover`

const { SnowFlakeError, unwrap } = require('../errors.js');
const { layoutKey, parseLayoutKey } = require('../ids/layout-key.js');
const { LIMITS, newId } = require('../lease/namespace.js');
const { moment } = require('../time.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags } = require('./flags.js');
const native = require('../native.js');
const namespaces = require('./namespace.js');
const { URL_HELP } = require('./store-url.js');

/** The largest error of a store's clock reading, ms: etcd's clock has whole seconds. */
const RESOLUTION_MS = 500;

const help = `Usage: snowdrift recover URL [options]

Raises the floor of a namespace above all IDs that its holders may have issued. Run it after a restore from a
backup, after a replica that lagged was promoted, or after tables, keys or nodes were deleted, before new
processes start. An extra run costs only another wait.

The namespace also gets a new ID, so each holder loses its slot at its next renewal, and continues by itself
above the floor.

The floor is the store's clock + ttl + maxClockSkew + maxAhead as recorded. If snowdrift raise ran
after the backup, pass the raised values. If the record is gone, pass all three and --layout: recover creates
a new record.

${URL_HELP}
${namespaces.LIMIT_HELP}
  --json                prints one object, with the floor in Unix ms
${LAYOUT_HELP}`;

const options = { ...LAYOUT_OPTIONS, ...namespaces.LIMIT_OPTIONS };

async function run(flags, positionals, { show, usage }) {
  const url = namespaces.readNamespaceUrl('recover', positionals, usage);
  const limits = namespaces.readLimitFlags(flags);
  const layout = readLayoutFlags(flags);
  const key = layout && layoutKey(layout);
  const missing = Object.entries(LIMITS).filter(([name]) => limits[name] === undefined);
  const needed = missing.map(([, flag]) => `--${flag}`);
  if (layout === undefined) needed.unshift('--layout');

  const record = await namespaces.withStore(url, async (name, calls) => {
    const found = await namespaces.readRecord(calls);
    if (found === undefined && needed.length > 0) {
      throw namespaces.noRecordError(
        name,
        `Pass the values of its holders: ${needed.join(', ')}. Values that are too small can cause duplicates. If there never was a namespace, nothing needs to be recovered`,
      );
    }
    if (found !== undefined && key !== undefined) checkLayout(name, found.layout, key);
    const before = found ?? { layout: key, ...namespaces.withDefaultLimits(limits) };
    return raiseFloor(name, calls, before, limits);
  });
  const until = namespaces.endOf(record.layout, record.floor);
  namespaces.showRecord(show, record, ['', `The first IDs have times after ${moment(until)}.`]);
}

function checkLayout(name, found, key) {
  if (found === key) return;
  throw new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} is for IDs of another layout or epoch: ${found}, and not ${key}. Leave out --layout and --epoch, or pass those of the namespace`,
  );
}

/** @param found without an ID if there was no record; another process may have created one meanwhile */
async function raiseFloor(name, calls, found, given) {
  const { ttl, maxClockSkew, maxAhead } = largerLimits(found, given);
  await calls.call('now', { ttl });
  const latest = calls.latestNow + RESOLUTION_MS;
  const horizon = latest + ttl + maxClockSkew + maxAhead;
  const floor = unwrap(native.tickAt(parseLayoutKey(found.layout), horizon));
  const record = { layout: found.layout, ttl, maxClockSkew, maxAhead, floor };
  let { id } = found;
  if (id === undefined) {
    const created = await calls.call('open', { id: newId(), ...record });
    checkLayout(name, created.layout, found.layout);
    ({ id } = created);
  }
  return calls.call('raise', { namespace: id, id: newId(), ttl, maxClockSkew, maxAhead, floor });
}

const largerLimits = (found, given) =>
  Object.fromEntries(
    Object.keys(LIMITS).map((name) => [name, Math.max(found[name], given[name] ?? 0)]),
  );

module.exports = { help, options, run };
