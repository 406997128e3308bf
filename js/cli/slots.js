'use strict';
// `snowdrift slots`

const { hostname } = require('node:os');
const { basename } = require('node:path');

const { directoryOf, sharedDirectory, variable } = require('../messages/checks.js');
const { unwrap } = require('../messages/errors.js');
const { textOf } = require('../messages/faults.js');
const { bitsOf } = require('../ids/layout-key.js');
const native = require('../runtime/native.js');
const { printable } = require('../messages/secrets.js');
const { isServer } = require('../stores/url.js');
const { moment } = require('../runtime/time.js');
const {
  KEY,
  aheadOf,
  asJson,
  endOf,
  namespaceLines,
  reasonOf,
  valuesOf,
  withRecords,
} = require('./records.js');
const { STORE_OPTIONS, URL_HELP, readStoreUrl } = require('./store-url.js');
const { table } = require('./table.js');

const help = `Usage: snowdrift slots [URL] [options]

Lists the slots of a namespace or a directory: worker IDs, their holders and the times of their holds. For a
namespace, it also shows the record. Without a URL and without SNOWDRIFT_LEASE, it lists this host's pages,
the files in shared memory that your processes share, with the processes of each. It changes nothing.

  URL                   file:///var/lib/app/ids, or
${URL_HELP.replace('  URL', '     ')}
  --json                prints { namespace, slots }, with times in Unix ms; namespace is null for a directory.
                        For this host it prints { directory, pages }

  held      a process holds the slot
  free      the slot was released, or its hold has expired. Worker IDs that nobody ever held are not shown
  died      the process ended without releasing the slot (directories: if it ran on this host)
  unusable  the slot's file or record cannot be read, or is damaged: snowdrift reset --help for a file,
            snowdrift recover --help for a namespace`;

const options = STORE_OPTIONS;

async function run(_, positionals, { show, usage }) {
  if (positionals.length === 0 && variable('SNOWDRIFT_LEASE') === undefined) {
    return show(readHost(), formatHost);
  }
  const url = readStoreUrl('slots', positionals, usage);
  const { namespace, fault, slots } = isServer(url)
    ? await withRecords(url, (records) => readStore(records))
    : { slots: readDirectory(directoryOf('the URL', url.href, { urlOnly: true })) };
  slots.sort(byNode);
  const shown = namespace ? asJson(namespace) : null;
  show({ namespace: fault === undefined ? shown : { fault }, slots }, () => {
    const lines = namespace ? namespaceLines(namespace) : [fault ?? []].flat();
    return [...lines, ...(lines.length > 0 ? [''] : []), formatSlots(slots)].join('\n');
  });
}

/** By datacenter and worker, and then those without. */
function byNode(a, b) {
  const [first, second] = [a, b].map(({ datacenterId = Number.MAX_VALUE, workerId }) => ({
    datacenterId,
    workerId: workerId ?? 0,
  }));
  return first.datacenterId - second.datacenterId || first.workerId - second.workerId;
}

const LOST = 'The record of the namespace is gone, its slots are not: see snowdrift recover --help';

/** @param datacenterId for the slots of one datacenter alone */
async function readStore(records, datacenterId) {
  const namespace = await records.namespace();
  const isKnown = namespace?.kind === KEY;
  // Without it, the buckets of the default layout are looked for.
  const text = isKnown ? namespace.text : records.newNamespace();
  const { keys, isWhole } = native.bucketKeys(text, !isKnown, datacenterId);
  const now = await records.latestNow();
  const { found, unread } = await records.readBuckets(keys);
  const given = isKnown ? [now, namespace.text] : [now];
  const slots = found.flatMap(([key, record]) =>
    slotsIn(records.name, key, record, isKnown ? namespace.layout : undefined, given),
  );
  if (unread > 0 || !isWhole) {
    const left = isWhole ? `${unread} of its ${keys.length}` : `all but its first ${keys.length}`;
    slots.push({ state: 'unusable', fault: `${records.name}: ${left} records were not read` });
  }
  if (isKnown) return { namespace, slots };
  if (namespace !== undefined) {
    return { slots, fault: `${records.name}: the key ${KEY} ${reasonOf(namespace)}` };
  }
  if (slots.length > 0) return { slots, fault: LOST };
  throw await records.missing('The first lease creates it, or snowdrift recover URL --new does');
}

/** The slots of a bucket that was read. @param given the store's clock, and the text of the namespace */
function slotsIn(store, key, record, layout, given) {
  const datacenterId = Number.parseInt(key, 10);
  const slot = { datacenterId, state: 'unusable' };
  const about = (why) => `${store}: the key ${key} ${why}`;
  if (record.failure !== undefined) return [{ ...slot, fault: printable(record.failure.message) }];
  const values = valuesOf(key, record, ...given);
  if (values.kind === 'unreadable') return [{ ...slot, fault: about(reasonOf(values)) }];
  const unusable = (workerId, why) => ({
    ...{ ...slot, workerId },
    fault: about(`has a line of workerId ${workerId} that ${why}`),
  });
  const lines = values.lines.map(({ isHeld, started, ceiling, ...line }) =>
    line.state === 'impossible'
      ? unusable(line.workerId, aheadOf(layout, ceiling))
      : {
          ...{ datacenterId, workerId: line.workerId },
          host: printable(line.host),
          pid: line.pid,
          startedAt: started,
          ...(line.address === undefined ? {} : { address: printable(line.address) }),
          // The end of a hold that was released has no meaning.
          expires: isHeld ? line.expires : null,
          state: line.state,
          ceiling: layout === undefined ? null : endOf(layout, ceiling),
        },
  );
  return [...lines, ...values.damaged.map((worker) => unusable(worker, 'is damaged'))];
}

/** This host's pages; null where the system has none. */
function readHost() {
  const host = unwrap(native.hostPages(sharedDirectory()));
  for (const page of host?.pages ?? []) if (page.fault) page.fault = textOf(page.fault);
  return host;
}

function readDirectory(directory) {
  const found = unwrap(native.slotsIn(directory, sharedDirectory()));
  return found.map(({ path, fault, holder, processes, ...slot }) => {
    if (fault) return { ...idsOf(path), state: 'unusable', fault: textOf(fault) };
    if (!holder) return { ...slot, state: 'free' };
    const { host, pid, started } = holder;
    const pids = processes.filter(({ isAlive }) => isAlive).map((one) => one.pid);
    return {
      ...slot,
      host: printable(host),
      pid,
      startedAt: started,
      // The process that wrote the file last may have ended while others of its host use the slot.
      state: pids.length > 0 ? 'held' : stateOf(host, pid),
      ...(pids.length > 0 ? { processes: pids } : {}),
    };
  });
}

/** The IDs in a slot file's name. */
function idsOf(path) {
  const [, datacenterId, workerId] = /datacenter-(\d+)-worker-(\d+)\.slot$/.exec(path) ?? [];
  return { datacenterId: Number(datacenterId), workerId: Number(workerId) };
}

/** 'held', or 'died' if the process of this host has ended. Processes of other hosts cannot be checked. */
function stateOf(host, pid) {
  if (host !== hostname()) return 'held';
  try {
    process.kill(pid, 0);
    return 'held';
  } catch ({ code }) {
    return code === 'EPERM' ? 'held' : 'died';
  }
}

/** This host's pages: one line per process. */
function formatHost(host) {
  if (host === null) {
    return 'This system has no shared-memory directory, so processes share no sequence (see scope).';
  }
  const { directory, pages } = host;
  if (pages.length === 0)
    return `No process of this user has generated IDs on this host (${directory}).`;
  const rows = table([
    ['datacenter', 'worker', 'layout', 'use', 'pid', 'instances', 'since', 'page'],
    ...pages.flatMap((page) => (page.fault ? [] : rowsOf(page))),
  ]);
  const faults = pages.flatMap(({ fault }) => fault ?? []);
  return [directory, ...rows, ...faults].join('\n');
}

/** A page's kind, and for a lease the end of its hold. */
function useOf({ kind, expires }) {
  return expires === undefined ? kind : `${kind} until ${moment(expires)}`;
}

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

/** The process that renewed a slot last, and the number of others of this host that share it. */
function pidsOf({ pid, processes = [] }) {
  const others = processes.filter((one) => one !== pid).length;
  return [pid ?? '', ...(others > 0 ? [`+ ${others}`] : [])].join(' ');
}

function formatSlots(slots) {
  if (slots.length === 0) return 'No slot was ever used.';
  const time = (ms) => ms && moment(ms);
  const rows = slots.map((slot) => [
    ...[slot.datacenterId, slot.workerId],
    slot.state,
    ...[slot.host, pidsOf(slot), time(slot.startedAt), time(slot.expires), time(slot.ceiling)],
  ]);
  const head = ['datacenter', 'worker', 'state', 'host', 'pid', 'since', 'expires', 'IDs up to'];
  return [...table([head, ...rows]), ...slots.flatMap(({ fault }) => fault ?? [])].join('\n');
}

module.exports = { help, options, readStore, run };
