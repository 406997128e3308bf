'use strict';
// `snowdrift recover`
//
// First the namespace gets another ID and its floor, then each bucket the ID, which tells the holders of its lines. In this order
// nobody takes a line below the floor, whatever happens in between: who takes one reads the namespace once more afterwards.
// Holders that renew meanwhile go on up to ceilings that their lines record, and the next holder of a line starts above both. So it
// may end half done, or run twice at one time.

const { SnowFlakeError, unwrap } = require('../messages/errors.js');
const { layoutKey } = require('../ids/layout-key.js');
const { DIRECTORY_LIMITS, LIMIT_RANGES, readLeaseOptions } = require('../generator/options.js');
const native = require('../runtime/native.js');
const { formatConflict } = require('../stores/failures.js');
const { moment } = require('../runtime/time.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags, readWholeNumber } = require('./flags.js');
const records = require('./records.js');
const { STORE_OPTIONS, URL_HELP, readStoreUrl } = require('./store-url.js');

const { KEY, newId } = records;

const help = `Usage: snowdrift recover URL [options]

Raises the floor of a namespace above all IDs that its holders may have issued. Run it after a restore from a
backup, after a replica that lagged was promoted, after tables, keys, nodes or files were deleted, for damaged
records, or after a clock that was ahead, before new processes start. An extra run costs only another wait.

The namespace also gets a new ID, so each holder loses its worker ID at its next renewal, up to half a ttl
later, and continues by itself after ttl + 2 x maxClockSkew + maxAhead from then on. It prints both times: of
the first IDs, and when all holders issue again.

The floor is the store's clock + ttl + 2 x maxClockSkew + maxAhead, the highest that a holder has recorded. If
holders got higher ones after the backup, pass these. If the record of the namespace is gone or damaged, pass
all three and --layout: recover creates a new one.

With --new it creates a namespace ahead of its first holder. Redis can lose a namespace, so the first holders
wait there for that time; --new saves the wait. With it you confirm that no namespace of this name has ever
issued IDs of this layout. If one did, its IDs can be issued again. It refuses a namespace that exists.

${URL_HELP}
  --new                 creates a namespace that never issued IDs
  --ttl MS              the largest ttl of a holder
  --max-clock-skew MS   the largest maxClockSkew of a holder
  --max-ahead MS        the largest maxAhead of a holder
                        (with --new, default: those of a lease)
  --json                prints one object: the namespace; floor, and latest, by when all holders issue again,
                        in Unix ms; holders, their number; replaced, the damaged records; unusable, records
                        that nobody can use
${LAYOUT_HELP}`;

const LIMITS = { ttl: 'ttl', maxClockSkew: 'max-clock-skew', maxAhead: 'max-ahead' };

const options = {
  ...LAYOUT_OPTIONS,
  ...STORE_OPTIONS,
  ...Object.fromEntries(Object.values(LIMITS).map((flag) => [flag, { type: 'string' }])),
  new: { type: 'boolean' },
};

/** The limits that flags set. */
function readLimitFlags(flags) {
  const limits = {};
  for (const [name, flag] of Object.entries(LIMITS)) {
    if (flags[flag] === undefined) continue;
    limits[name] = readWholeNumber(`--${flag}`, flags[flag], ...LIMIT_RANGES[name]);
  }
  return limits;
}

async function run(flags, positionals, { show, usage }) {
  const url = readStoreUrl('recover', positionals, usage);
  const [given, layout] = [readLimitFlags(flags), readLayoutFlags(flags)];
  const isNew = flags.new === true;
  const { namespace, notes, ...more } = await records.withRecords(url, (store) => {
    const { ttl, maxClockSkew } = store.isDirectory ? DIRECTORY_LIMITS : {};
    if (isNew) return create(store, { ttl, maxClockSkew, ...given }, layout);
    return recover(store, { maxClockSkew, ...given }, layout);
  });
  show({ ...records.asJson(namespace), ...more }, () =>
    [...records.namespaceLines(namespace), ...(notes ?? notesOf(namespace, more))].join('\n'),
  );
}

function notesOf({ layout, floor }, { latest, holders, replaced, unusable }) {
  const ids = `${holders} worker ID${holders === 1 ? '' : 's'}`;
  const living = `The holders of ${ids}, if they did not end, issue again by ${moment(latest)}, if the store answers them.`;
  return [
    '',
    `The first IDs have times after ${moment(records.endOf(layout, floor))}.`,
    ...(holders > 0 ? [living] : []),
    ...replaced.map((what) => `Replaced ${what}.`),
    ...unusable.map((what) => `No lease uses ${what}.`),
  ];
}

/**
 * Creates a namespace that is new. In two writes: the first one may be late, when others have issued IDs and their records were
 * lost; the second one confirms that very record.
 */
async function create(store, limits, layout) {
  const { leasing, maxAhead = 0 } = readLeaseOptions({ ...limits, datacenterId: 0 });
  const text = store.newNamespace(layout, { ...leasing, maxAhead });
  const exists = (found) => {
    const { id, failure } = records.valuesOf(KEY, found);
    if (failure !== undefined) return failure;
    const named = id === undefined ? '' : `, with the ID ${id}`;
    const what = `${store.name} exists already${named}: leases can use it as it is. After a loss, run: snowdrift recover ${store.url}`;
    return new SnowFlakeError('ERR_SNOWFLAKE_STORE', what);
  };
  const present = await store.read(KEY);
  if (present !== undefined) throw exists(present);
  if ((await uncounted(store, text)).length > 0) {
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_STORE',
      `${store.name} is not new: it has records of worker IDs, and the record of the namespace is gone. Leave out --new`,
    );
  }
  const created = await store.write(KEY, text, undefined);
  if (!created.isWritten) throw exists(created.found);
  const confirmed = native.confirmedNamespaceText(text);
  const { isWritten, found } = await store.write(KEY, confirmed, created.token);
  const namespace = records.valuesOf(KEY, isWritten ? { text: confirmed } : found);
  if (namespace === undefined) throw await deleted(store);
  // A holder that was faster has changed it already.
  if (namespace.id !== records.valuesOf(KEY, { text }).id) throw exists(found);
  return { namespace, notes: [] };
}

const deleted = (store) => store.missing('It was deleted meanwhile: run the command again');

/** @param layout if it was given */
async function recover(store, limits, layout) {
  const seen = { replaced: [], unusable: [], holders: 0 };
  const given = Object.keys(LIMITS).map((name) => limits[name] ?? 0);
  let before;
  const text = await store.change(KEY, async (record) => {
    before = records.valuesOf(KEY, record);
    const old = await textBefore(store, before, limits, layout);
    const more = await uncounted(store, old);
    return native.recoveredNamespaceText(old, newId(), given, more, await store.latestNow());
  });
  if (before?.kind === 'unreadable') {
    seen.replaced.push(`the record of the namespace, which ${records.reasonOf(before)}`);
  }
  try {
    const { keys, isWhole } = native.bucketKeys(text, false);
    await store.each(keys, (key) => touch(store, text, key, seen));
    if (!isWhole) seen.unusable.push(`the records after the first ${keys.length}, which stay`);
    const namespace = records.valuesOf(KEY, { text });
    return { namespace, latest: await latestOf(store, namespace), ...seen };
  } catch (failure) {
    const done =
      'The floor is raised: new holders start above it. Living ones notice once the command has run to its end: run it again';
    throw new SnowFlakeError(failure.code, `${failure.message}. ${done}`, { cause: failure });
  }
}

/**
 * The text of the namespace that is recovered: the one that was found, or a new one where that is lost or damaged.
 * @param layout if it was given
 */
async function textBefore(store, found, limits, layout) {
  if (found?.isOther) throw found.failure ?? formatConflict(store.name, `the key ${KEY}`);
  if (found?.kind === KEY) {
    if (layout === undefined || layoutKey(layout) === layoutKey(found.layout)) return found.text;
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_STORE',
      `${store.name} is for IDs of another layout or epoch: ${layoutKey(found.layout)}, not ${layoutKey(layout)}. Leave out --layout and --epoch, or pass those of the namespace`,
    );
  }
  const missing = Object.keys(LIMITS).filter((name) => limits[name] === undefined);
  const needed = missing.map((name) => `--${LIMITS[name]}`);
  if (layout === undefined) needed.unshift('--layout');
  if (needed.length === 0) return store.newNamespace(layout, limits);
  const advice = `Pass the values of its holders: ${needed.join(', ')}. Values that are too small can cause duplicates`;
  if (found === undefined) {
    throw await store.missing(
      `${advice}. If there never was a namespace, nothing needs to be recovered`,
    );
  }
  const what = `${store.name}: the record of the namespace ${records.reasonOf(found)}. ${advice}`;
  throw new SnowFlakeError('ERR_SNOWFLAKE_STORE', what);
}

/** Whether a key of a file is of the layout of a namespace. */
function isOf(text) {
  const { datacenterBits, workerBits } = records.valuesOf(KEY, { text }).layout;
  return (key) => {
    const [datacenterId, workerId] = key.split('/').map(Number);
    return datacenterId < 2 ** datacenterBits && workerId < 2 ** workerBits;
  };
}

/** The keys of buckets that the store has and the namespace does not count, as far as they are looked for. */
async function uncounted(store, text) {
  const counted = new Set(native.bucketKeys(text, false).keys);
  const keys = (await store.files())?.filter(isOf(text)) ?? native.bucketKeys(text, true).keys;
  const others = keys.filter((key) => !counted.has(key));
  const found = [];
  await store.each(others, async (key) => {
    if ((await store.read(key)) !== undefined) found.push(key);
  });
  return found;
}

/**
 * Writes the ID of the recovered namespace into a bucket. One that is absent stays so: it was lost, and who takes a line of it
 * raises the floor for that.
 */
async function touch(store, text, key, seen) {
  let values;
  const written = await store.change(key, async (record) => {
    const now = await store.latestNow();
    values = records.valuesOf(key, record, now, text);
    if (values === undefined || values.isOther) return undefined;
    if (native.recoveredBucketText(values.text, text, now) === null) return undefined;
    // Another recover may have given the namespace another ID since.
    const current = await store.namespace();
    if (current?.kind !== KEY) throw await deleted(store);
    return native.recoveredBucketText(values.text, current.text, now) ?? undefined;
  });
  if (values === undefined) return;
  const { isOther, failure, lines = [], damaged = [] } = values;
  const place = store.isDirectory ? store.placeOf(key) : `the record ${key}`;
  if (failure !== undefined) {
    const [datacenterId, workerId] = key.split('/');
    seen.unusable.push(`workerId ${workerId} of datacenterId ${datacenterId}: ${failure.message}`);
  } else if (isOther) {
    const why = `${records.reasonOf(values)}: run the command of the version that wrote it, or delete it once the processes that used it have ended`;
    seen.unusable.push(`${place}, which ${why}`);
  }
  const { layout } = records.valuesOf(KEY, { text });
  for (const { workerId, state, ceiling } of lines) {
    if (state !== 'impossible') continue;
    seen.unusable.push(
      `workerId ${workerId} of ${place}, which ${records.aheadOf(layout, ceiling)}`,
    );
  }
  if (written === undefined) return;
  if (values.kind === 'unreadable') {
    seen.replaced.push(`${place}, which ${records.reasonOf(values)}`);
  }
  seen.replaced.push(...damaged.map((worker) => `the line of workerId ${worker} in ${place}`));
  seen.holders += lines.filter(({ state }) => state === 'held').length;
}

/** When all holders issue again, Unix ms: one notices within half a ttl, and starts above its horizon of then. */
async function latestOf(store, { layout, ttl, reach }) {
  const latest = (await store.latestNow()) + ttl / 2 + reach;
  return records.endOf(layout, unwrap(native.tickAt(layout, latest)));
}

module.exports = { create, help, options, recover, run };
