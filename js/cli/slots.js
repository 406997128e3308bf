'use strict';
// `snowdrift slots`

const { hostname } = require('node:os');
const { basename } = require('node:path');

const { directoryOf, variable } = require('../checks.js');
const { unwrap } = require('../errors.js');
const { textOf } = require('../faults.js');
const { bitsOf } = require('../ids/layout-key.js');
const native = require('../native.js');
const { printable } = require('../secrets.js');
const { isServer } = require('../stores/url.js');
const { moment } = require('../time.js');
const { asJson, endOf, recordLines, withStore } = require('./namespace.js');
const { STORE_OPTIONS, URL_HELP, readStoreUrl } = require('./store-url.js');
const { bold, paint, table } = require('./terminal.js');

const help = `Usage: snowdrift slots [URL] [options]

Lists the slots of a namespace or a directory: worker IDs, their holders and the times of their holds. For a
namespace, it also shows the record. Without a URL and without SNOWDRIFT_LEASE, it lists this host's pages,
the files in shared memory that your processes share, with the processes of each. It changes nothing.

  URL                   file:///var/lib/app/ids, or
${URL_HELP.replace('  URL', '     ')}
  --json                prints { namespace, slots }, with times in Unix ms; namespace is null for a directory.
                        For this host it prints { directory, pages }

  held      a process holds the slot
  free      the slot was released, or its hold has expired
  died      the process ended without releasing the slot (directories: if it ran on this host)
  unusable  the slot's file cannot be read, or is damaged: snowdrift reset --help`;

const options = STORE_OPTIONS;

async function run(_, positionals, { show, usage }) {
  if (positionals.length === 0 && variable('SNOWDRIFT_LEASE') === undefined) {
    show(readHost(), formatHost);
    return;
  }
  const url = readStoreUrl('slots', positionals, usage);
  const { namespace, slots } = isServer(url)
    ? await readStore(url)
    : { slots: readDirectory(directoryOf('the URL', url, { urlOnly: true })) };
  slots.sort((a, b) => a.datacenterId - b.datacenterId || a.workerId - b.workerId);
  show({ namespace: namespace ? asJson(namespace) : null, slots }, () => {
    const record = namespace ? [...recordLines(namespace), ''] : [];
    return [...record, formatSlots(slots)].join('\n');
  });
}

async function readStore(url) {
  const { namespace, slots } = await withStore(url, (_, calls) => calls.call('slots'));
  return {
    namespace,
    slots: slots.map(({ isHeld, ceiling, ...slot }) => ({
      ...slot,
      state: isHeld ? 'held' : 'free',
      ceiling: endOf(namespace.layout, ceiling),
    })),
  };
}

/** This host's pages; null where the system has none. */
function readHost() {
  const host = unwrap(native.hostPages(variable('SNOWDRIFT_SHARED')));
  for (const page of host?.pages ?? []) if (page.fault) page.fault = textOf(page.fault);
  return host;
}

function readDirectory(directory) {
  const found = unwrap(native.slotsIn(directory, variable('SNOWDRIFT_SHARED')));
  return found.map(({ path, fault, holder, processes, ...slot }) => {
    if (fault) return { ...idsOf(path), state: 'unusable', fault: textOf(fault) };
    if (!holder) return { ...slot, state: 'free' };
    const { host, pid, started } = holder;
    const pids = processes.filter(({ isAlive }) => isAlive).map((one) => one.pid);
    return {
      ...slot,
      host: printable(host),
      pid,
      startedAt: new Date(started),
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
  const lines = table([
    ['datacenter', 'worker', 'layout', 'use', 'pid', 'instances', 'since', 'page'],
    ...pages.flatMap((page) => (page.fault ? [] : rowsOf(page))),
  ]);
  const faults = pages.flatMap(({ fault }) => fault ?? []);
  return [bold(directory), bold(lines[0]), ...lines.slice(1), ...faults].join('\n');
}

/** A page's kind, and for a lease the end of its hold. */
function useOf({ kind, expires }) {
  return expires === undefined ? kind : `${kind} until ${moment(expires)}`;
}

function rowsOf(page) {
  const { path, layout, datacenterId, workerId, processes, renewer } = page;
  const key = `${bitsOf(layout)}@${layout.tickMs}`;
  const node = [String(datacenterId), String(workerId), key, useOf(page)];
  const users = processes.filter(({ isAlive }) => isAlive);
  if (users.length === 0) return [[...node, 'none', '', '', basename(path)]];
  return users.map((one) => [
    ...[...node, one.pid === renewer ? `${one.pid} renews` : String(one.pid)],
    ...[String(one.users), moment(one.opened), basename(path)],
  ]);
}

/** The process that renewed a slot last, and the number of others of this host that share it. */
function pidsOf({ pid, processes = [] }) {
  const others = processes.filter((one) => one !== pid).length;
  return [pid ?? '', ...(others > 0 ? [`+ ${others}`] : [])].join(' ');
}

const COLOURS = { held: 32, free: 90, died: 31, unusable: 31 };

function formatSlots(slots) {
  if (slots.length === 0) return 'No slot was ever used.';
  const time = (ms) => (ms === undefined || ms === null ? '' : moment(ms));
  const [head, ...rest] = table([
    ['datacenter', 'worker', 'state', 'host', 'pid', 'since', 'expires', 'IDs up to'],
    ...slots.map((slot) => [
      ...[String(slot.datacenterId), String(slot.workerId), slot.state, slot.host ?? ''],
      ...[pidsOf(slot), time(slot.startedAt), time(slot.expires)],
      time(slot.ceiling),
    ]),
  ]);
  return [
    bold(head),
    ...rest.map((row, i) => paint(row, COLOURS[slots[i].state])),
    ...slots.flatMap(({ fault }) => fault ?? []),
  ].join('\n');
}

module.exports = { help, options, run };
