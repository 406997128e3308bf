'use strict';
// `snowdrift namespace recover`
//
// First the namespace gets its floor and a new ID; then the slots are freed, which tells their holders. In this order nobody
// takes a slot below the floor, whatever happens in between: who takes one reads the namespace once more afterwards. Holders that
// renew meanwhile go on up to ceilings that their slots record, and the next holder of a slot starts above both. So it may end
// half done, or run twice at one time.

const { SnowFlakeError, unwrap } = require('../errors.js');
const { layoutKey } = require('../ids/layout-key.js');
const { LIMITS } = require('../faults.js');
const native = require('../native.js');
const { moment } = require('../time.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags } = require('./flags.js');
const namespaces = require('./namespace.js');
const { URL_HELP } = require('./store-url.js');

/** The largest error of a store's clock reading, ms: etcd's clock has whole seconds. */
const RESOLUTION_MS = 500;

const help = `Usage: snowdrift namespace recover URL [options]

Raises the floor of a namespace above all IDs that its holders may have issued. Run it after a restore from a
backup, after a replica that lagged was promoted, or after tables, keys or nodes were deleted, before new
processes start. An extra run costs only another wait.

The namespace also gets a new ID, so each holder loses its slot at its next renewal, and continues by itself
above the floor.

The floor is the store's clock + ttl + maxClockSkew + maxAhead as recorded. If snowdrift namespace raise ran
after the backup, pass the raised values. If the record is gone, pass all three and --layout: recover creates
a new record.

${URL_HELP}
${namespaces.LIMIT_HELP}
  --json                prints one object, with the floor in Unix ms
${LAYOUT_HELP}`;

const options = { ...LAYOUT_OPTIONS, ...namespaces.LIMIT_OPTIONS };

async function run(flags, positionals, { show, usage }) {
  const url = namespaces.readNamespaceUrl('namespace recover', positionals, usage);
  const limits = namespaces.readLimitFlags(flags);
  const layout = readLayoutFlags(flags);
  const recovered = await namespaces.withRecords(url, (records) =>
    recover(records, limits, layout),
  );
  const until = namespaces.endOf(recovered.layout, recovered.floor);
  const notes = ['', `The first IDs have times after ${moment(until)}.`];
  namespaces.showNamespace(show, recovered, notes);
}

/** @param layout if it was given */
async function recover(records, limits, layout) {
  if ((await records.read()) === undefined) await create(records, limits, layout);
  const namespace = await raiseFloor(records, limits, layout);
  try {
    await freeSlots(records, namespace);
  } catch (failure) {
    const done =
      'The floor is raised: new holders start above it. Living ones notice once the command has run to its end';
    throw new SnowFlakeError(failure.code, `${failure.message}. ${done}`, { cause: failure });
  }
  return namespace;
}

/** Creates a namespace that was lost, unless another process does. This write may be late: so it sets no floor. */
async function create(records, limits, layout) {
  const missing = Object.keys(LIMITS).filter((name) => limits[name] === undefined);
  const needed = missing.map((name) => `--${LIMITS[name]}`);
  if (layout === undefined) needed.unshift('--layout');
  if (needed.length > 0) {
    throw records.missing(
      `Pass the values of its holders: ${needed.join(', ')}. Values that are too small can cause duplicates. If there never was a namespace, nothing needs to be recovered`,
    );
  }
  await records.write({ id: namespaces.newId(), layout, ...limits, floor: 'lost' }, undefined);
}

/** Raises the floor to the horizon: above all ceilings that holders can have had confirmed. */
function raiseFloor(records, limits, layout) {
  return records.change(async (found) => {
    if (layout !== undefined) checkLayout(records, found.layout, layout);
    const { ttl, maxClockSkew, maxAhead } = namespaces.largerLimits(found, limits);
    const latest = (await records.latestNow()) + RESOLUTION_MS;
    const horizon = unwrap(native.tickAt(found.layout, latest + ttl + maxClockSkew + maxAhead));
    // No floor falls.
    const floor = Math.max(horizon, Number(found.floor) || horizon);
    return { ...found, id: namespaces.newId(), ttl, maxClockSkew, maxAhead, floor };
  }, 'It was deleted meanwhile: run the command again');
}

function checkLayout({ name }, found, given) {
  const [key, wanted] = [found, given].map(layoutKey);
  if (key === wanted) return;
  throw new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `${name} is for IDs of another layout or epoch: ${key}, and not ${wanted}. Leave out --layout and --epoch, or pass those of the namespace`,
  );
}

/** Frees the held slots of earlier namespaces. Holders renew no others. */
async function freeSlots(records, namespace) {
  const { records: all } = await records.list();
  for (const record of all) {
    const isOlder = record.values?.isHeld === true && record.values.namespace !== namespace.id;
    if (isOlder) await records.free(record, namespace);
  }
}

module.exports = { help, options, recover, run };
