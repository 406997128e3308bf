'use strict';
// `snowdrift slots`

/**
 * @import { HostPage } from '../types.js'
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
 * @typedef {{ namespace?: Namespace, slots: Slot[], fault?: string }} Shown
 * @typedef {Exclude<HostPage, { fault: object }>} UsablePage
 * @typedef {{ path: string, fault: string }} UnusablePage
 */

const { basename } = require('node:path');

const { sharedDirectory, variable } = require('../messages/checks.js');
const { unwrap } = require('../messages/errors.js');
const { textOf } = require('../messages/faults.js');
const { bitsOf } = require('../ids/layout-key.js');
const native = require('../runtime/native.js');
const { printable } = require('../messages/secrets.js');
const { moment } = require('../runtime/time.js');
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

const help = `Usage: snowdrift slots [URL] [options]

Shows the record of a namespace and its slots: worker IDs, their holders and the times of their holds. A
directory is a namespace, too. Without a URL and without SNOWDRIFT_LEASE, it lists this host's pages, the
files in shared memory that your processes share, with the processes of each. It changes nothing.

${URL_HELP}
  --json                prints { namespace, slots }, with times in Unix ms. For this host it prints
                        { directory, pages }

  held      a process holds the slot
  free      the slot was released, its hold has expired, or in a directory its processes have ended. Worker
            IDs that nobody ever held are not shown
  unusable  the slot's record or file cannot be read, is damaged, or has times that no holder can have: see
            snowdrift recover --help`;

const options = STORE_OPTIONS;

/**
 * @param {object} _
 * @param {string[]} positionals
 * @param {CommandIo} io
 */
async function run(_, positionals, { show, usage }) {
  if (positionals.length === 0 && variable('SNOWDRIFT_LEASE') === undefined) {
    return show(readHost(), formatHost);
  }
  const url = readStoreUrl('slots', positionals, usage);
  const { namespace, fault, slots } = await withRecords(url, (records) => readStore(records));
  slots.sort(byNode);
  const shown = namespace ? asJson(namespace) : null;
  show({ namespace: fault === undefined ? shown : { fault }, slots }, () => {
    const lines = namespace ? namespaceLines(namespace) : [fault ?? []].flat();
    return [...lines, ...(lines.length > 0 ? [''] : []), formatSlots(slots)].join('\n');
  });
}

/**
 * By datacenter and worker, and then those without.
 * @param {Slot} a
 * @param {Slot} b
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
  if (known !== undefined) return { namespace: known, slots };
  if (namespace?.kind === 'unreadable') {
    const { failure } = namespace;
    const why = failure?.message ?? `${records.placeOf(KEY)} ${reasonOf(namespace)}`;
    return { slots, fault: printable(why) };
  }
  if (slots.length > 0) return { slots, fault: LOST };
  throw await records.missing(
    `The first lease creates it, or snowdrift recover ${records.url} --new does`,
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
 */
function formatHost(host) {
  if (host === null) {
    return 'This system has no shared-memory directory, so processes share no sequence (see scope).';
  }
  const { directory, pages } = host;
  if (pages.length === 0)
    return `No process of this user has generated IDs on this host (${directory}).`;
  const rows = table([
    ['datacenter', 'worker', 'layout', 'use', 'pid', 'instances', 'since', 'page'],
    ...pages.flatMap((page) => (page.fault === undefined ? rowsOf(page) : [])),
  ]);
  const faults = pages.flatMap(({ fault }) => fault ?? []);
  return [directory, ...rows, ...faults].join('\n');
}

/**
 * A page's kind, and for a lease the end of its hold.
 * @param {UsablePage} page
 */
function useOf({ kind, expires }) {
  return expires === undefined ? kind : `${kind} until ${moment(expires)}`;
}

/** @param {UsablePage} page */
function rowsOf(page) {
  const { path, layout, datacenterId, workerId, processes, renewer } = page;
  const key = `${bitsOf(layout)}@${layout.tickMs}`;
  const node = [datacenterId, workerId, key, useOf(page)];
  const users = processes.filter(({ isAlive }) => isAlive);
  if (users.length === 0) return [[...node, 'none', '', '', basename(path)]];
  return users.map((one) => [
    ...[...node, one.pid === renewer ? `${one.pid} renews` : one.pid],
    ...[one.users, moment(one.opened), basename(path)],
  ]);
}

/** @param {Slot[]} slots */
function formatSlots(slots) {
  if (slots.length === 0) return 'No slot was ever used.';
  const time = (/** @type {number | null | undefined} */ ms) => ms && moment(ms);
  const rows = slots.map((slot) => [
    ...[slot.datacenterId, slot.workerId],
    slot.state,
    ...[slot.host, slot.pid, time(slot.startedAt), time(slot.expires), time(slot.ceiling)],
  ]);
  const head = ['datacenter', 'worker', 'state', 'host', 'pid', 'since', 'expires', 'IDs up to'];
  return [...table([head, ...rows]), ...slots.flatMap(({ fault }) => fault ?? [])].join('\n');
}

module.exports = { help, options, readStore, run };
