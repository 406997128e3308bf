'use strict';
// `snowdrift slots`

const { hostname } = require('node:os');

const { SnowFlakeError, configError, granted, shown } = require('../errors.js');
const native = require('../native.js');
const { directoryOf } = require('../options.js');
const { connect, isEngine, unknownEngine } = require('../lease/connect.js');
const { bold, coloured, table } = require('./colours.js');

/** How long an engine has to answer, ms. */
const LIMIT_MS = 10_000;

const help = `Usage: snowdrift slots URL [options]

Who holds which worker ID, since when and until when, of a namespace or a directory. It changes nothing.

  URL                   file:///var/lib/app/ids, postgres://..., mysql://..., redis://..., etcd://...,
                        zookeeper://...; with ?namespace=NAME for another than 'default'
  --json                one array of objects

  held      somebody holds it            free      it was given up, or its hold has expired
  died      its process has ended (files: of this host)`;

const options = {};

async function run(flags, positionals, { print, usage }) {
  if (positionals.length !== 1)
    throw usage('slots needs one URL: snowdrift slots file:///var/lib/app/ids');
  let url;
  try {
    url = new URL(positionals[0]);
  } catch {
    throw configError(`slots needs a URL; this is ${shown(positionals[0])}`);
  }
  if (!isEngine(url) && url.protocol !== 'file:') throw unknownEngine(url.href);
  const slots = isEngine(url)
    ? await ofEngine(url)
    : ofFiles(directoryOf('URL', url, { urlOnly: true }));
  slots.sort((a, b) => a.datacenterId - b.datacenterId || a.workerId - b.workerId);
  if (flags.json) print(JSON.stringify(slots, undefined, 2));
  else print(show(slots));
}

async function ofEngine(url) {
  const store = await connect(url);
  let timer;
  try {
    const limit = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${LIMIT_MS} ms`)), LIMIT_MS);
    });
    const { layout, slots } = await Promise.race([store.slots(), limit]);
    const [, tickMs, epoch] = /ticks of (\d+) ms from (-?\d+)/.exec(layout) ?? [];
    const end = (tick) => Number(epoch) + (tick + 1) * Number(tickMs) - 1;
    return slots.map(({ isHeld, ceiling, ...slot }) => ({
      ...slot,
      state: isHeld ? 'held' : 'free',
      ceiling: end(ceiling),
    }));
  } catch (cause) {
    if (cause instanceof SnowFlakeError) throw cause;
    throw new SnowFlakeError('ERR_SNOWFLAKE_STORE', `${store.name} failed: ${shown(cause)}`, {
      cause,
    });
  } finally {
    clearTimeout(timer);
    await store.close?.();
  }
}

function ofFiles(directory) {
  return granted(native.slotsIn(directory)).map(({ path, fault, holder, ...slot }) => {
    if (fault) throw new SnowFlakeError('ERR_SNOWFLAKE_STORE', fault);
    const { host, pid, started } = holder ?? {};
    return {
      ...slot,
      ...(holder ? { host, pid, startedAt: new Date(started) } : {}),
      state: holder ? stateOf(host, pid) : 'free',
    };
  });
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

const COLOURS = { held: 32, free: 90, died: 31 };

function show(slots) {
  if (slots.length === 0) return 'No slot was ever used there.';
  const time = (ms) => (ms === undefined ? '' : new Date(ms).toISOString());
  const [head, ...rows] = table([
    ['datacenter', 'worker', 'state', 'host', 'pid', 'since', 'expires', 'IDs up to'],
    ...slots.map((slot) => [
      ...[String(slot.datacenterId), String(slot.workerId), slot.state, slot.host ?? ''],
      ...[slot.pid === undefined ? '' : String(slot.pid), time(slot.startedAt), time(slot.expires)],
      time(slot.ceiling),
    ]),
  ]);
  return [bold(head), ...rows.map((row, i) => coloured(row, COLOURS[slots[i].state]))].join('\n');
}

module.exports = { help, options, run };
