'use strict';
// `snowdrift slots`

const { hostname } = require('node:os');

const { granted, moment } = require('../errors.js');
const { isEngine } = require('../lease/connect.js');
const native = require('../native.js');
const { bold, coloured, table } = require('./colours.js');
const { asJson, endOf, rows, withStore } = require('./namespace.js');
const { URL_HELP, directoryOf, placeOf } = require('./place.js');

const help = `Usage: snowdrift slots URL [options]

Who holds which worker ID, since when and until when, of a namespace or a directory, and what is recorded of
the namespace. It changes nothing.

  URL                   file:///var/lib/app/ids, or
${URL_HELP.replace('  URL', '     ')}
  --json                { namespace, slots }; times in Unix ms; a directory has no namespace, null

  held      somebody holds it
  free      it was released, or its hold has expired
  died      its process has ended without releasing it (files: of this host)
  unusable  its file cannot be read, or is damaged: snowdrift reset --help`;

const options = {};

async function run(flags, positionals, { print, usage }) {
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
