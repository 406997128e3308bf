'use strict';
// `snowdrift slots`

/**
 * @import { HostPage } from '../types.js'
 * @import { FlagsOf } from './flags.js'
 * @import { CommandIo } from './main.js'
 * @import { Found, Namespace, Store } from './records.js'
 *
 * A slot, as --json shows it. One that is unusable has a `fault`, and lacks what is not known.
 * @typedef {object} Slot
 * @property {'held' | 'free' | 'unusable'} state
 * @property {number} [datacenterId]
 * @property {number} [workerId]
 * @property {string} [host]
 * @property {number} [pid]
 * @property {number} [startedAt]
 * @property {string} [address]
 * @property {number | null} [expires]
 * @property {number | null} [ceiling]
 * @property {string} [fault]
 *
 * @typedef {{ datacenterId?: number, workerId?: number }} Node
 * @typedef {{ namespace?: Namespace, slots: Slot[], fault?: string, now: number }} Shown
 * @typedef {Exclude<HostPage, { fault: object }>} UsablePage
 * @typedef {{ path: string, fault: string }} UnusablePage
 */

const { basename } = require('node:path');

const { sharedDirectory, variable } = require('../messages/checks.js');
const { unwrap } = require('../messages/errors.js');
const { textOf } = require('../messages/faults.js');
const native = require('../runtime/native.js');
const { printable } = require('../messages/secrets.js');
const { unixNow } = require('../runtime/time.js');
const {
  KEY,
  aheadOf,
  asJson,
  bucketIn,
  endOf,
  keysOf,
  namespaceLines,
  reasonOf,
  withRecords,
} = require('./records.js');
const { STORE_OPTIONS, URL_HELP, readStoreUrl } = require('./store-url.js');
const { table } = require('./table.js');
const { distance, layoutWord, second } = require('./words.js');

/** IDs of a hold may go on after its end: maxAhead, or a tick. More than this is shown, ms. */
const AHEAD_MS = 1000;

const help = `Usage: snowdrift slots [URL] [--all] [options]
       snowdrift slots --host [--all] [options]

Shows who holds which worker ID, when the holder started, and when the hold expires unless it is
renewed, by the store's clock. With --host, or without a URL, it shows which processes of this host
use which worker ID. It changes nothing.

  --host                shows this host, also if SNOWDRIFT_LEASE is set
  --all                 shows also free worker IDs with their last holders; of this host also the
                        pages that no process uses, and the names of all
  --json                prints all, with times in Unix ms: { namespace, slots }, or of this host
                        { directory, pages }

${URL_HELP}

A worker ID is
  held          by a process, or by one that did not release it, until maxClockSkew after it expired
  free          released, or expired for longer; in a directory, its processes have ended. Worker
                IDs that nobody ever held are not listed
  unusable      its record or file cannot be read, is damaged, or has times that no holder can have

Of a store:
  namespace ID  a random number. After snowdrift recover, or a loss, it is another one
  limits        the highest that a holder has recorded: snowdrift recover uses them
  floor         the IDs of new holders have later times
  IDs up to     the ceiling: IDs of the hold can have times up to this. Shown if far after expires

Of this host:
  lease         when the lease of the page expires unless this host renews it; none: no lease
  instances     the open generators of the process
  page          the file that the processes of a node share. It outlives them, so that a restart
                repeats no ID: do not delete it. A reboot deletes all pages`;

const options = /** @type {const} */ ({
  ...STORE_OPTIONS,
  all: { type: 'boolean' },
  host: { type: 'boolean' },
});

/**
 * @param {FlagsOf<typeof options>} flags
 * @param {string[]} positionals
 * @param {CommandIo} io
 */
async function run({ all = false, host }, positionals, { show, usage }) {
  if (host && positionals.length > 0) throw usage('--host shows this host: leave out the URL');
  if (host || (positionals.length === 0 && variable('SNOWDRIFT_LEASE') === undefined)) {
    return show(readHost(), (host) => formatHost(host, all));
  }
  const url = readStoreUrl('slots', positionals, usage);
  const read = await withRecords(url, async (records) => ({
    ...(await readStore(records)),
    name: records.name,
  }));
  const { namespace, fault, slots, name, now } = read;
  slots.sort(byNode);
  const shown = namespace ? asJson(namespace) : null;
  show({ namespace: fault === undefined ? shown : { fault }, slots }, () => {
    const lines = namespace ? namespaceLines(name, namespace, now) : [fault ?? []].flat();
    const gap = lines.length > 0 ? [''] : [];
    return [...lines, ...gap, ...formatSlots(slots, { namespace, now, all })].join('\n');
  });
}

/**
 * By datacenter and worker, and then those without.
 * @param {Node} a
 * @param {Node} b
 */
function byNode(a, b) {
  const datacenterOf = ({ datacenterId = Number.MAX_VALUE }) => datacenterId;
  return datacenterOf(a) - datacenterOf(b) || (a.workerId ?? 0) - (b.workerId ?? 0);
}

const LOST = 'The record of the namespace is gone, its slots are not: see snowdrift recover --help';

/**
 * @param {Store} records
 * @param {number} [datacenterId] for the slots of one datacenter alone
 * @returns {Promise<Shown>}
 */
async function readStore(records, datacenterId) {
  const namespace = await records.namespace();
  const known = namespace?.kind === KEY ? namespace : undefined;
  // Without it, the buckets of the default layout are looked for.
  const text = known?.text ?? records.newNamespace();
  const files = await records.files();
  const all = () => keysOf(text, known === undefined, datacenterId);
  const { keys, isWhole } = files ? { keys: files, isWhole: true } : all();
  const now = await records.latestNow();
  const { found, unread } = await records.readBuckets(keys);
  const slots = found.flatMap(([key, record]) => slotsIn(records, key, record, now, known));
  if (unread > 0 || !isWhole) {
    const left = isWhole ? `${unread} of its ${keys.length}` : `all but its first ${keys.length}`;
    slots.push({ state: 'unusable', fault: `${records.name}: ${left} records were not read` });
  }
  if (known !== undefined) return { namespace: known, slots, now };
  if (namespace?.kind === 'unreadable') {
    const { failure } = namespace;
    const why = failure?.message ?? `${records.placeOf(KEY)} ${reasonOf(namespace)}`;
    return { slots, fault: printable(why), now };
  }
  if (slots.length > 0) return { slots, fault: LOST, now };
  throw await records.missing(
    `If it was lost: snowdrift help recover. Otherwise the first lease creates it, or snowdrift recover ${records.url} --new does`,
  );
}

/**
 * The slots of a bucket that was read.
 * @param {Store} records
 * @param {string} key
 * @param {Found} record
 * @param {number} now the store's clock
 * @param {Namespace | undefined} namespace if there is one
 * @returns {Slot[]}
 */
function slotsIn(records, key, record, now, namespace) {
  const [datacenterId, bucket] = key.split('/').map(Number);
  /** @type {Slot} */
  const slot = {
    datacenterId,
    ...(records.isDirectory && { workerId: bucket }),
    state: 'unusable',
  };
  const about = (/** @type {string} */ why) => `${records.placeOf(key)} ${why}`;
  const values = bucketIn(key, record, now, namespace?.text);
  if (values.kind === 'unreadable') {
    const { failure } = values;
    const why = failure === undefined ? about(reasonOf(values)) : printable(failure.message);
    return [{ ...slot, fault: why }];
  }
  const unusable = (/** @type {number} */ workerId, /** @type {string} */ why) => ({
    ...{ ...slot, workerId },
    fault: about(`has a line of workerId ${workerId} that ${why}`),
  });
  const lines = values.lines.map(({ isHeld, started, ceiling, ...line }) =>
    line.state === 'impossible' && namespace !== undefined
      ? unusable(line.workerId, aheadOf(namespace.layout, ceiling))
      : {
          ...{ datacenterId, workerId: line.workerId },
          host: printable(line.host),
          pid: line.pid,
          startedAt: started,
          ...(line.address === undefined ? {} : { address: printable(line.address) }),
          // The end of a hold that was released has no meaning.
          expires: isHeld ? line.expires : null,
          state: /** @type {'held' | 'free'} */ (line.state),
          ceiling: namespace === undefined ? null : endOf(namespace.layout, ceiling),
        },
  );
  return [...lines, ...values.damaged.map((worker) => unusable(worker, 'is damaged'))];
}

/**
 * @param {HostPage} page
 * @returns {UsablePage | UnusablePage}
 */
function shownPage(page) {
  return page.fault === undefined ? page : { path: page.path, fault: textOf(page.fault) };
}

/** This host's pages; null where the system has none. */
function readHost() {
  const host = unwrap(native.hostPages(sharedDirectory()));
  if (host === null) return null;
  const { directory, pages } = host;
  return { directory, pages: pages.map(shownPage) };
}

/**
 * This host's pages: one line per process.
 * @param {ReturnType<typeof readHost>} host
 * @param {boolean} all
 */
function formatHost(host, all) {
  if (host === null) {
    return 'This system has no shared-memory directory, so processes share no sequence (see scope).';
  }
  const { directory, pages } = host;
  if (pages.length === 0)
    return `No process of this user has generated IDs on this host (${directory}).`;
  const usable = pages.flatMap((page) => (page.fault === undefined ? page : [])).sort(byNode);
  const used = usable.filter(({ processes }) => processes.some(({ isAlive }) => isAlive));
  const now = unixNow();
  const rows = (all ? usable : used).flatMap((page) =>
    rowsOf(page, now).map((row) => [...row, ...(all ? [basename(page.path)] : [])]),
  );
  const head = ['datacenter', 'worker', 'layout', 'lease', 'pid', 'instances', 'since'];
  if (all) head.push('page');
  const faults = pages.flatMap(({ fault }) => fault ?? []);
  const unused = usable.length - used.length;
  return [
    directory,
    ...(rows.length > 0 ? table([head, ...rows]) : []),
    ...(used.length > 0 ? [] : ['No process uses a page.']),
    ...faults,
    ...hiddenLine(all ? 0 : unused, 'page is used by no process', 'pages are used by no process'),
  ].join('\n');
}

/**
 * How many are not shown, as one or several are named.
 * @param {number} count
 * @param {string} one
 * @param {string} several
 */
function hiddenLine(count, one, several) {
  if (count === 0) return [];
  return [count === 1 ? `1 ${one}: --all shows it` : `${count} ${several}: --all shows them`];
}

/**
 * @param {UsablePage} page
 * @param {number} now
 */
function rowsOf(page, now) {
  const { layout, datacenterId, workerId, processes, renewer, expires } = page;
  const lease =
    expires === undefined
      ? 'none'
      : `${expires < now ? 'expired' : 'expires'} ${distance(expires, now)}`;
  const node = [datacenterId, workerId, layoutWord(layout), lease];
  const users = processes.filter(({ isAlive }) => isAlive);
  if (users.length === 0) return [[...node, 'none', '', '']];
  return users.map((one) => [
    ...[...node, one.pid === renewer ? `${one.pid} (renews)` : one.pid],
    ...[one.users, second(one.opened)],
  ]);
}

/**
 * @param {Slot[]} slots
 * @param {{ namespace?: Namespace, now: number, all: boolean }} shown `now` by the store's clock
 */
function formatSlots(slots, { namespace, now, all }) {
  if (slots.length === 0) return ['No slot was ever used.'];
  const of = (/** @type {Slot['state']} */ state) => slots.filter((slot) => slot.state === state);
  const [held, free, unusable] = [of('held'), of('free'), of('unusable')];
  const shown = all ? slots.filter(({ state }) => state !== 'unusable') : held;
  const isAhead = shown.some(({ expires, ceiling }) => (ceiling ?? 0) > (expires ?? 0) + AHEAD_MS);
  const rows = shown.map(({ startedAt, expires, ceiling, ...slot }) => [
    ...[slot.datacenterId, slot.workerId, slot.state, slot.host, slot.pid],
    ...[startedAt && second(startedAt), expires && distance(expires, now)],
    ...(isAhead ? [ceiling && second(ceiling)] : []),
  ]);
  const head = ['datacenter', 'worker', 'state', 'host', 'pid', 'started', 'expires'];
  return [
    ...(rows.length > 0 ? table([[...head, ...(isAhead ? ['IDs up to'] : [])], ...rows]) : []),
    heldLine(held, namespace),
    ...unusable.map(unusableLine),
    ...(unusable.length > 0 ? ['What to do about unusable ones: snowdrift help recover'] : []),
    ...hiddenLine(all ? 0 : free.length, 'worker ID is free again', 'worker IDs are free again'),
  ];
}

/**
 * How many worker IDs are held, by datacenter.
 * @param {Slot[]} held
 * @param {Namespace | undefined} namespace
 */
function heldLine(held, namespace) {
  if (held.length === 0) return 'No worker ID is held.';
  /** @type {Map<number | undefined, number>} */
  const counts = new Map();
  for (const { datacenterId } of held) {
    counts.set(datacenterId, (counts.get(datacenterId) ?? 0) + 1);
  }
  const of = namespace === undefined ? '' : ` of ${2 ** namespace.layout.workerBits}`;
  const each = [...counts].map(
    ([datacenter, count]) => `${count}${of} in datacenter ${datacenter}`,
  );
  return `Held worker IDs: ${each.join(', ')}`;
}

/** @param {Slot} slot which is unusable */
function unusableLine({ datacenterId, workerId, fault }) {
  const [datacenter, worker] = [`datacenter ${datacenterId}`, `worker ${workerId}`];
  const node = [
    ...(datacenterId === undefined ? [] : [datacenter]),
    ...(workerId === undefined ? [] : [worker]),
  ];
  return `unusable: ${[...node, fault].join(', ')}`;
}

module.exports = { help, options, readStore, run };
