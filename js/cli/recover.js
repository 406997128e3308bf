'use strict';
// `snowdrift recover`
//
// First the namespace gets another ID and its floor, then each bucket the ID, which tells the holders of its lines. In this order
// nobody takes a line below the floor, whatever happens in between: who takes one reads the namespace once more afterwards.
// Holders that renew meanwhile go on up to ceilings that their lines record, and the next holder of a line starts above both. So it
// may end half done, or run twice at one time.

/**
 * @import { SnowFlakeError as Refused } from '../../index.js'
 * @import { Layout, StoreSettings } from '../types.js'
 * @import { FlagsOf } from './flags.js'
 * @import { CommandIo } from './main.js'
 * @import { Bucket, Found, Limits, Namespace, Store, Unreadable } from './records.js'
 *
 * What a recover has done so far: the records that it replaced, those that nobody can use, and the number of the holders.
 * @typedef {{ replaced: string[], unusable: string[], holders: number }} Seen
 *
 * What it has done in the end, and when all holders generate IDs again.
 * @typedef {Seen & { latest: number }} Done
 */

const { SnowFlakeError, unwrap } = require('../messages/errors.js');
const { layoutKey } = require('../ids/layout-key.js');
const { DIRECTORY_LIMITS, LIMIT_RANGES, readLeaseOptions } = require('../generator/options.js');
const native = require('../runtime/native.js');
const { formatConflict } = require('../stores/failures.js');
const { LAYOUT_HELP, LAYOUT_OPTIONS, readLayoutFlags, readWholeNumber } = require('./flags.js');
const records = require('./records.js');
const { STORE_OPTIONS, URL_HELP, readStoreUrl } = require('./store-url.js');
const { second } = require('./words.js');

const { KEY, newId } = records;

const help = `Usage: snowdrift recover URL [options]

Raises the floor of a namespace above all IDs that its holders may have generated. Run it before
new processes start, after: a restore from a backup; a promoted replica that lagged; deleted tables,
keys, nodes or files; damaged records; a clock that was ahead. An extra run costs only another wait.

New processes generate IDs after ttl + 2 x maxClockSkew + maxAhead. A living holder stops at its
next renewal, within 0.6 x ttl, and continues by itself as much later. It prints both times.

Limits, by default the highest that a holder has recorded. If holders got higher ones after the
backup, pass these. If the record of the namespace is gone or damaged, pass all and --layout:
  --ttl MS              the largest ttl of a holder
  --max-clock-skew MS   the largest maxClockSkew of a holder
  --max-ahead MS        the largest maxAhead of a holder
  --lost                needed if the store has no record of the namespace: you confirm that all are
                        lost, and that the database, schema and namespace of the URL are right

Creation:
  --new                 creates a namespace ahead, so that the first holders on Redis need not wait,
                        with the limits of a lease or those that you pass. You confirm that no
                        namespace of this name has ever issued IDs of this layout: if one did, IDs
                        can repeat

Output:
  --json                prints one object: the namespace; floor, and latest, by when living holders
                        continue, in Unix ms; holders, their number; replaced, the damaged records;
                        unusable, records that nobody can use

${URL_HELP}

${LAYOUT_HELP}`;

/** The part of a ttl after which each living holder has renewed. */
const RENEWAL = 0.6;

/** The flag of each limit. */
const LIMITS = /** @type {const} */ ([
  ['ttl', 'ttl'],
  ['maxClockSkew', 'max-clock-skew'],
  ['maxAhead', 'max-ahead'],
]);

const options = /** @type {const} */ ({
  ...LAYOUT_OPTIONS,
  ...STORE_OPTIONS,
  ttl: { type: 'string' },
  'max-clock-skew': { type: 'string' },
  'max-ahead': { type: 'string' },
  new: { type: 'boolean' },
  lost: { type: 'boolean' },
});

/**
 * The limits that flags set.
 * @param {FlagsOf<typeof options>} flags
 */
function readLimitFlags(flags) {
  /** @type {Partial<Limits>} */
  const limits = {};
  for (const [name, flag] of LIMITS) {
    if (flags[flag] === undefined) continue;
    const [min, max] = LIMIT_RANGES[name];
    limits[name] = readWholeNumber(`--${flag}`, flags[flag], min, max);
  }
  return limits;
}

/**
 * @param {FlagsOf<typeof options>} flags
 * @param {string[]} positionals
 * @param {CommandIo} io
 */
async function run(flags, positionals, { show, usage }) {
  const url = readStoreUrl('recover', positionals, usage);
  const [given, layout] = [readLimitFlags(flags), readLayoutFlags(flags)];
  const { new: isNew = false, lost: isLost = false } = flags;
  if (isNew && isLost) {
    throw usage('--new is for a namespace that never was, --lost for one that was: leave out one');
  }
  let name = '';
  /** @type {(store: Store) => Promise<{ namespace: Namespace } & Partial<Done>>} */
  const change = async (store) => {
    name = store.name;
    /** @type {Partial<Limits>} */
    const { ttl = store.ttl, maxClockSkew } = store.isDirectory ? DIRECTORY_LIMITS : {};
    if (isNew) return await create(store, { ttl, maxClockSkew, ...given }, layout);
    return await recover(store, { maxClockSkew, ...given }, layout, isLost);
  };
  const { namespace, ...more } = await records.withRecords(url, change);
  const notes = isNew ? NEW : notesOf(namespace, /** @type {Done} */ (more));
  show({ ...records.asJson(namespace), ...more }, () =>
    [...records.namespaceLines(name, namespace), ...notes].join('\n'),
  );
}

const NEW = ['', 'Processes that you start now generate IDs at once.'];

/** The next whole second. @param {number} unixMs */
const secondAfter = (unixMs) => second(Math.ceil(unixMs / 1000) * 1000);

/**
 * @param {Namespace} namespace
 * @param {Done} done
 */
function notesOf(
  { layout, floor, ttl, reach, maxClockSkew },
  { latest, holders, replaced, unusable },
) {
  // A bucket got its floor later than the namespace.
  const last = latest - maxClockSkew - RENEWAL * ttl;
  const first = secondAfter(Math.max(unwrap(native.tickEnd(layout, floor)), last));
  const ids = `${holders} worker ID${holders === 1 ? '' : 's'}`;
  const stopped = secondAfter(latest - reach - maxClockSkew);
  const living = `Living holders of ${ids} stop by ${stopped} and continue by ${secondAfter(latest)}, if the store answers them.`;
  return [
    '',
    `Processes that you start now generate IDs from ${first}.`,
    ...(holders > 0 ? [living] : []),
    ...replaced.map((what) => `Replaced ${what}.`),
    ...unusable.map((what) => `No lease uses ${what}.`),
  ];
}

/**
 * Creates a namespace that is new. In two writes: the first one may be late, when others have issued IDs and their records were
 * lost; the second one confirms that very record.
 * @param {Store} store
 * @param {Partial<Limits>} limits
 * @param {Layout | undefined} layout if it was given
 */
async function create(store, limits, layout) {
  const read = readLeaseOptions({ ...limits, datacenterId: 0 });
  const { leasing, maxAhead } = /** @type {StoreSettings} */ (read);
  const text = store.newNamespace(layout, { ...leasing, maxAhead });
  const exists = async (/** @type {Namespace | Unreadable | undefined} */ present) => {
    if (present === undefined) return await deleted(store);
    if (present.kind === 'unreadable' && present.failure !== undefined) return present.failure;
    const named = present.kind === 'unreadable' ? '' : `, with the ID ${present.id}`;
    const what = `${store.name} exists already${named}: leases can use it as it is. After a loss, run: snowdrift recover ${store.url}`;
    return new SnowFlakeError('ERR_SNOWFLAKE_STORE', what);
  };
  const present = await store.namespace();
  if (present !== undefined) throw await exists(present);
  if ((await uncounted(store, text)).length > 0) {
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_STORE',
      `${store.name} is not new: it has records of worker IDs, and the record of the namespace is gone. Leave out --new`,
    );
  }
  const created = await store.write(KEY, text, undefined);
  if (!created.isWritten) throw await exists(records.namespaceIn(created.found));
  const confirmed = /** @type {string} */ (native.confirmedNamespaceText(text));
  const { isWritten, found } = await store.write(KEY, confirmed, created.token);
  const namespace = isWritten ? records.namespaceOf(confirmed) : records.namespaceIn(found);
  // A holder that was faster has changed it already.
  const { id } = records.namespaceOf(text);
  if (namespace?.kind !== KEY || namespace.id !== id) throw await exists(namespace);
  return { namespace };
}

const deleted = (/** @type {Store} */ store) =>
  store.missing('It was deleted meanwhile: run the command again');

/**
 * @param {Store} store
 * @param {Partial<Limits>} limits those that were given
 * @param {Layout | undefined} layout if it was given
 * @param {boolean} [isLost] whether the user confirms that a namespace without any record is lost
 */
async function recover(store, limits, layout, isLost = false) {
  /** @type {Seen} */
  const seen = { replaced: [], unusable: [], holders: 0 };
  const given = LIMITS.map(([name]) => limits[name] ?? 0);
  let before = /** @type {Namespace | Unreadable | undefined} */ (undefined);
  const text = await store.change(KEY, async (record) => {
    before = records.namespaceIn(record);
    const old = await textBefore(store, before, limits, layout, isLost);
    const more = await uncounted(store, old);
    const now = await store.latestNow();
    return /** @type {string} */ (native.recoveredNamespaceText(old, newId(), given, more, now));
  });
  if (before?.kind === 'unreadable') {
    seen.replaced.push(`the record of the namespace, which ${records.reasonOf(before)}`);
  }
  try {
    const { keys, isWhole } = records.keysOf(text, false);
    await store.each(keys, (key) => touch(store, text, key, seen));
    if (!isWhole) seen.unusable.push(`the records after the first ${keys.length}, which stay`);
    const namespace = records.namespaceOf(text);
    return { namespace, latest: await latestOf(store, namespace), ...seen };
  } catch (failure) {
    const done =
      'The floor is raised: new holders start above it. Living ones notice once the command has run to its end: run it again';
    const { code, message } = /** @type {Refused} */ (failure);
    throw new SnowFlakeError(code, `${message}. ${done}`, { cause: failure });
  }
}

/**
 * The text of the namespace that is recovered: the one that was found, or a new one where that is lost or damaged.
 * @param {Store} store
 * @param {Namespace | Unreadable | undefined} found
 * @param {Partial<Limits>} limits those that were given
 * @param {Layout | undefined} layout if it was given
 * @param {boolean} isLost
 */
async function textBefore(store, found, limits, layout, isLost) {
  if (found?.kind === 'unreadable' && found.isOther) {
    throw found.failure ?? formatConflict(store.name, `the key ${KEY}`);
  }
  if (found?.kind === KEY) {
    if (layout === undefined || layoutKey(layout) === layoutKey(found.layout)) return found.text;
    throw new SnowFlakeError(
      'ERR_SNOWFLAKE_STORE',
      `${store.name} is for IDs of another layout or epoch: ${layoutKey(found.layout)}, not ${layoutKey(layout)}. Leave out --layout and --epoch, or pass those of the namespace`,
    );
  }
  const missing = LIMITS.filter(([name]) => limits[name] === undefined);
  const needed = missing.map(([, flag]) => `--${flag}`);
  if (layout === undefined) needed.unshift('--layout');
  const isWhole = needed.length === 0;
  // Nothing shows that the URL is the right one: a namespace of another name or schema may be meant.
  const isAbsent = found === undefined && !isLost && !(await hasBuckets(store, layout));
  if (isWhole && !isAbsent) return store.newNamespace(layout, /** @type {Limits} */ (limits));
  const values = `the values of its holders: ${needed.join(', ')}. Values that are too small can cause duplicates`;
  if (isAbsent) {
    const more = isWhole ? '' : ` and ${values}`;
    throw await store.missing(
      `If all its records were lost, pass --lost${more}. If there never was a namespace, nothing needs to be recovered`,
    );
  }
  const why = found === undefined ? 'is gone' : records.reasonOf(found);
  const what = `${store.name}: the record of the namespace ${why}. Pass ${values}`;
  throw new SnowFlakeError('ERR_SNOWFLAKE_STORE', what);
}

/**
 * Whether the store has buckets of a namespace whose own record is gone, as far as they are looked for.
 * @param {Store} store
 * @param {Layout | undefined} layout
 */
const hasBuckets = async (store, layout) =>
  (await uncounted(store, store.newNamespace(layout))).length > 0;

/**
 * Whether a key of a file is of the layout of a namespace.
 * @param {string} text of the namespace
 * @returns {(key: string) => boolean}
 */
function isOf(text) {
  const { datacenterBits, workerBits } = records.namespaceOf(text).layout;
  return (/** @type {string} */ key) => {
    const [datacenterId, workerId] = key.split('/').map(Number);
    return datacenterId < 2 ** datacenterBits && workerId < 2 ** workerBits;
  };
}

/**
 * The keys of buckets that the store has and the namespace does not count, as far as they are looked for.
 * @param {Store} store
 * @param {string} text of the namespace
 */
async function uncounted(store, text) {
  const counted = new Set(records.keysOf(text, false).keys);
  const keys = (await store.files())?.filter(isOf(text)) ?? records.keysOf(text, true).keys;
  const others = keys.filter((key) => !counted.has(key));
  /** @type {string[]} */
  const found = [];
  await store.each(others, async (key) => {
    if ((await store.read(key)) !== undefined) found.push(key);
  });
  return found;
}

/**
 * Writes the ID of the recovered namespace into a bucket. One that is absent stays so: it was lost, and who takes a line of it
 * raises the floor for that.
 * @param {Store} store
 * @param {string} text of the namespace
 * @param {string} key
 * @param {Seen} seen
 */
async function touch(store, text, key, seen) {
  let values = /** @type {Bucket | Unreadable | undefined} */ (undefined);
  const written = await store.change(key, async (record) => {
    const now = await store.latestNow();
    values = record && records.bucketIn(key, record, now, text);
    if (values === undefined || (values.kind === 'unreadable' && values.isOther)) return undefined;
    if (native.recoveredBucketText(values.text, text, now) === null) return undefined;
    // Another recover may have given the namespace another ID since.
    const current = await store.namespace();
    if (current?.kind !== KEY) throw await deleted(store);
    return native.recoveredBucketText(values.text, current.text, now) ?? undefined;
  });
  if (values === undefined) return;
  const place = store.isDirectory ? store.placeOf(key) : `the record ${key}`;
  if (values.kind !== 'unreadable') {
    noteBucket(values, text, place, written !== undefined, seen);
  } else if (values.failure !== undefined) {
    const [datacenterId, workerId] = key.split('/');
    const what = `workerId ${workerId} of datacenterId ${datacenterId}`;
    seen.unusable.push(`${what}: ${values.failure.message}`);
  } else if (values.isOther) {
    const why = `${records.reasonOf(values)}: run the command of the version that wrote it, or delete it once the processes that used it have ended`;
    seen.unusable.push(`${place}, which ${why}`);
  } else if (written !== undefined) {
    seen.replaced.push(`${place}, which ${records.reasonOf(values)}`);
  }
}

/**
 * Notes what a bucket has.
 * @param {Bucket} bucket
 * @param {string} text of the namespace
 * @param {string} place of the bucket, for people
 * @param {boolean} isWritten whether it has the ID of the namespace only now
 * @param {Seen} seen
 */
function noteBucket({ lines, damaged }, text, place, isWritten, seen) {
  const { layout } = records.namespaceOf(text);
  for (const { workerId, state, ceiling } of lines) {
    if (state !== 'impossible') continue;
    seen.unusable.push(
      `workerId ${workerId} of ${place}, which ${records.aheadOf(layout, ceiling)}`,
    );
  }
  if (!isWritten) return;
  seen.replaced.push(...damaged.map((worker) => `the line of workerId ${worker} in ${place}`));
  seen.holders += lines.filter(({ state }) => state === 'held').length;
}

/**
 * When all holders generate IDs again, Unix ms: one notices within half a ttl, of a directory within 0.57 ttl, and starts above its
 * horizon of then, which its clock passes later by up to maxClockSkew.
 * @param {Store} store
 * @param {Namespace} namespace
 */
async function latestOf(store, { layout, ttl, maxClockSkew, reach }) {
  const latest = (await store.latestNow()) + RENEWAL * ttl + reach + maxClockSkew;
  return records.endOf(layout, unwrap(native.tickAt(layout, latest)));
}

module.exports = { create, help, options, recover, run };
