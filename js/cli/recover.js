'use strict';
// `snowdrift namespace recover`
//
// First the namespace gets its floor and a new ID; then the slots are freed, which tells their holders. In this order nobody
// takes a slot below the floor, whatever happens in between: who takes one reads the namespace once more afterwards. Holders that
// renew meanwhile go on up to ceilings that their slots record, and the next holder of a slot starts above both. So it may end
// half done, or run twice at one time.
//
// A record that nobody can read is left as it is: it may be a later version's, whose rules this one does not know. It endangers
// nothing. Leases use no slot of it, and a slot whose record was deleted is a new one, above the floor.

const { SnowFlakeError, unwrap } = require('../messages/errors.js');
const { layoutKey } = require('../ids/layout-key.js');
const { LIMITS } = require('../messages/faults.js');
const native = require('../runtime/native.js');
const { printable } = require('../messages/secrets.js');
const { moment } = require('../runtime/time.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags } = require('./flags.js');
const namespaces = require('./namespace.js');
const { URL_HELP } = require('./store-url.js');

/** The largest error of a store's clock reading, ms: etcd's clock has whole seconds. */
const RESOLUTION_MS = 500;

const help = `Usage: snowdrift namespace recover URL [options]

Raises the floor of a namespace above all IDs that its holders may have issued. Run it after a restore from a
backup, after a replica that lagged was promoted, or after tables, keys or nodes were deleted, before new
processes start. An extra run costs only another wait.

The namespace also gets a new ID, so each holder loses its slot at its next renewal, up to half a ttl later,
and continues by itself after ttl + maxClockSkew + maxAhead from then on. It prints both times: of the first
IDs, and when all holders issue again.

The floor is the store's clock + ttl + maxClockSkew + maxAhead as recorded. If snowdrift namespace raise ran
after the backup, pass the raised values. If the record is gone, pass all three and --layout: recover creates
a new record.

${URL_HELP}
${namespaces.LIMIT_HELP}
  --json                prints one object: the namespace; floor, and latest, by when all holders issue again,
                        in Unix ms; damaged, the keys of records that nobody can read
${LAYOUT_HELP}`;

const options = { ...LAYOUT_OPTIONS, ...namespaces.LIMIT_OPTIONS };

async function run(flags, positionals, { show, usage }) {
  const url = namespaces.readNamespaceUrl('namespace recover', positionals, usage);
  const limits = namespaces.readLimitFlags(flags);
  const layout = readLayoutFlags(flags);
  const recovered = await namespaces.withRecords(url, (records) =>
    recover(records, limits, layout),
  );
  const { latest, damaged } = recovered;
  const notes = [
    '',
    `The first IDs have times after ${moment(namespaces.endOf(recovered.layout, recovered.floor))}.`,
    `Holders that were not ended issue again by ${moment(latest)}, if the store answers them.`,
  ];
  if (damaged.length > 0) {
    notes.push(
      `Nobody can read these records, and leases use none of their slots: ${damaged.map(printable).join(', ')}. If a newer snowdrift wrote them, run the command of that version. If they are damaged, delete them once the processes that used them have ended.`,
    );
  }
  namespaces.showNamespace(show, recovered, notes, { latest, damaged });
}

/** @param layout if it was given */
async function recover(records, limits, layout) {
  if ((await records.read()) === undefined) await create(records, limits, layout);
  const namespace = await raiseFloor(records, limits, layout);
  try {
    const damaged = await freeSlots(records, namespace);
    // A holder notices within half a ttl, and starts above its horizon of then.
    const latest = await horizonOf(records, namespace, namespace.ttl / 2);
    return { ...namespace, damaged, latest: namespaces.endOf(namespace.layout, latest) };
  } catch (failure) {
    const done =
      'The floor is raised: new holders start above it. Living ones notice once the command has run to its end';
    throw new SnowFlakeError(failure.code, `${failure.message}. ${done}`, { cause: failure });
  }
}

/** Creates a namespace that was lost, unless another process does. This write may be late: so it sets no floor. */
async function create(records, limits, layout) {
  const missing = Object.keys(LIMITS).filter((name) => limits[name] === undefined);
  const needed = missing.map((name) => `--${LIMITS[name]}`);
  if (layout === undefined) needed.unshift('--layout');
  if (needed.length > 0) {
    throw await records.missing(
      `Pass the values of its holders: ${needed.join(', ')}. Values that are too small can cause duplicates. If there never was a namespace, nothing needs to be recovered`,
    );
  }
  await records.write({ id: namespaces.newId(), layout, ...limits, floor: 'lost' }, undefined);
}

/** Raises the floor to the horizon: above all ceilings that holders can have had confirmed. */
function raiseFloor(records, limits, layout) {
  return records.change(async (found) => {
    if (layout !== undefined && layoutKey(layout) !== layoutKey(found.layout)) {
      throw new SnowFlakeError(
        'ERR_SNOWFLAKE_STORE',
        `${records.name} is for IDs of another layout or epoch: ${layoutKey(found.layout)}, not ${layoutKey(layout)}. Leave out --layout and --epoch, or pass those of the namespace`,
      );
    }
    const raised = { ...found, ...namespaces.largerLimits(found, limits), id: namespaces.newId() };
    const horizon = await horizonOf(records, raised);
    // No floor falls.
    return { ...raised, floor: Math.max(horizon, Number(found.floor) || horizon) };
  }, 'It was deleted meanwhile: run the command again');
}

/** A tick above all ceilings that holders can have had confirmed until now, or in `later` ms. */
async function horizonOf(records, { layout, ttl, maxClockSkew, maxAhead }, later = 0) {
  const latest = (await records.latestNow()) + RESOLUTION_MS + later;
  return unwrap(native.tickAt(layout, latest + ttl + maxClockSkew + maxAhead));
}

/** Frees the held slots of earlier namespaces. Holders renew no others. Returns the keys of damaged records. */
async function freeSlots(records, namespace) {
  const { records: all } = await records.list();
  const damaged = [];
  for (const record of all) {
    const { kind, isHeld, namespace: of } = record.values ?? { kind: 'damaged' };
    if (kind === 'damaged') damaged.push(record.key);
    else if (isHeld && of !== namespace.id) await records.free(record, namespace);
  }
  return damaged;
}

module.exports = { help, options, recover, run };
