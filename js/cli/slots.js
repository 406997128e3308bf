'use strict';
// `snowdrift slots`

const { hostname } = require('node:os');
const { basename } = require('node:path');

const { granted, moment } = require('../errors.js');
const { isEngine } = require('../lease/connect.js');
const native = require('../native.js');
const { bold, coloured, table } = require('./colours.js');
const { asJson, endOf, rows, withStore } = require('./namespace.js');
const { URL_HELP, directoryOf, placeOf } = require('./place.js');

const help = `Usage: snowdrift slots [URL] [options]

Lists the slots of a namespace or a directory: who holds which worker ID, since when and until when. For a
namespace, it also shows the record. Without a URL, and without SNOWDRIFT_LEASE, it lists this host's
pages: the files in shared memory from which your processes draw, and the processes of each. It changes
nothing.

  URL                   file:///var/lib/app/ids, or
${URL_HELP.replace('  URL', '     ')}
  --json                { namespace, slots }; times in Unix ms; namespace is null for a directory. Of this
                        host { directory, pages }

  held      somebody holds it
  free      it was released, or its hold has expired
  died      its process has ended without releasing it (files: of this host)
  unusable  its file cannot be read, or is damaged: snowdrift reset --help`;

const options = {};

async function run(flags, positionals, { print, usage }) {
  if (positionals.length === 0 && !process.env.SNOWDRIFT_LEASE) {
    const host = granted(native.hostPages(process.env.SNOWDRIFT_SHARED || undefined));
    print(flags.json ? JSON.stringify(host, undefined, 2) : showHost(host));
    return;
  }
  const url = placeOf('slots', positionals, usage);
  const { namespace, slots } = isEngine(url)
    ? await ofEngine(url)
    : { slots: ofFiles(directoryOf(url)) };
  slots.sort((a, b) => a.datacenterId - b.datacenterId || a.workerId - b.workerId);
  if (flags.json) {
    const shown = { namespace: namespace ? asJson(namespace) : null, slots };
    print(JSON.stringify(shown, undefined, 2));
    return;
  }
  const record = namespace ? [...rows(namespace), ''] : [];
  print([...record, show(slots)].join('\n'));
}

async function ofEngine(url) {
  const { namespace, slots } = await withStore(url, ({ call }) => call('slots'));
  return {
    namespace,
    slots: slots.map(({ isHeld, ceiling, ...slot }) => ({
      ...slot,
      state: isHeld ? 'held' : 'free',
      ceiling: endOf(namespace.layout, ceiling),
    })),
  };
}

function ofFiles(directory) {
  return granted(native.slotsIn(directory)).map(({ path, fault, holder, ...slot }) => {
    if (fault) return { ...idsOf(path), state: 'unusable', fault };
    const { host, pid, started } = holder ?? {};
    return {
      ...slot,
      ...(holder ? { host, pid, startedAt: new Date(started) } : {}),
      state: holder ? stateOf(host, pid) : 'free',
    };
  });
}

/** Whose slot a file that cannot be read is, by its name. */
function idsOf(path) {
  const [, datacenterId, workerId] = /datacenter-(\d+)-worker-(\d+)\.slot$/.exec(path) ?? [];
  return { datacenterId: Number(datacenterId), workerId: Number(workerId) };
}

/** Whether a process that holds a file is still there. Of another host that cannot be seen. */
function stateOf(host, pid) {
  if (host !== hostname()) return 'held';
  try {
    process.kill(pid, 0);
    return 'held';
  } catch ({ code }) {
    return code === 'EPERM' ? 'held' : 'died';
  }
}

/** This host's pages: a line for each of their processes. */
function showHost(host) {
  if (host === null) {
    return 'This system has no directory in memory, so processes share no sequence (see scope).';
  }
  const { directory, pages } = host;
  if (pages.length === 0)
    return `No process of this user has drawn IDs on this host (${directory}).`;
  const lines = table([
    ['datacenter', 'worker', 'layout', 'pid', 'instances', 'since', 'page'],
    ...pages.flatMap((page) => (page.fault ? [] : rowsOf(page))),
  ]);
  const faults = pages.flatMap(({ fault }) => fault ?? []);
  return [bold(directory), bold(lines[0]), ...lines.slice(1), ...faults].join('\n');
}

function rowsOf({ path, layout, datacenterId, workerId, processes }) {
  const { timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits } = layout;
  const bits = [timestampBits, datacenterBits, workerBits, clockBackBits, sequenceBits].join('/');
  const node = [String(datacenterId), String(workerId), `${bits}@${layout.tickMs}`];
  const users = processes.filter(({ isAlive }) => isAlive);
  if (users.length === 0) return [[...node, 'none', '', '', basename(path)]];
  return users.map((one) => [
    ...[...node, String(one.pid), String(one.users), moment(one.opened), basename(path)],
  ]);
}

const COLOURS = { held: 32, free: 90, died: 31, unusable: 31 };

function show(slots) {
  if (slots.length === 0) return 'No slot was ever used there.';
  const time = (ms) => (ms === undefined || ms === null ? '' : moment(ms));
  const [head, ...rest] = table([
    ['datacenter', 'worker', 'state', 'host', 'pid', 'since', 'expires', 'IDs up to'],
    ...slots.map((slot) => [
      ...[String(slot.datacenterId), String(slot.workerId), slot.state, slot.host ?? ''],
      ...[slot.pid === undefined ? '' : String(slot.pid), time(slot.startedAt), time(slot.expires)],
      time(slot.ceiling),
    ]),
  ]);
  return [
    bold(head),
    ...rest.map((row, i) => coloured(row, COLOURS[slots[i].state])),
    ...slots.flatMap(({ fault }) => fault ?? []),
  ].join('\n');
}

module.exports = { help, options, run };
