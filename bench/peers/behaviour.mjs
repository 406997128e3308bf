// The part `behaviour`: whether processes of one kind generate the same IDs, in which order, and what happens when the clock
// goes back. By comparing IDs.

import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

import kinds from './kinds.cjs';

const require = createRequire(import.meta.url);
require('../../__test__/support/own-directory.js');
const { Machine, missing } = require('../../__test__/support/machine.js');
const { Peer } = require('../../__test__/support/peer.js');

const { KINDS, namesHere, numberOf } = kinds;
const TASKS = fileURLToPath(new URL('tasks.cjs', import.meta.url));
/** So long before it draws, in ms of its clock, a process starts: more than that takes. */
const LEAD = 10_000;
const PROCESSES = 8;

/** Calls a function of tasks.cjs in a process. */
const call = (process, task, ...values) =>
  process.run(
    (scene, path, name, given) => scene.require(path)[name](...given),
    TASKS,
    task,
    values,
  );

/** Processes with a generator each, ended after `act`. A number is undefined for what the README of a kind shows. */
async function withProcesses(kind, numbers, act, env = {}) {
  const processes = numbers.map(() => new Peer({ env }));
  try {
    await Promise.all(processes.map((each, i) => call(each, 'open', kind, numbers[i])));
    return await act(processes);
  } finally {
    await Promise.all(processes.map((each) => each.end()));
  }
}

/** How many IDs are equal to an earlier one. */
const countDuplicates = (ids) => ids.length - new Set(ids).size;

/** The share of pairs of IDs, one drawn after the other, that do not rise. */
const shareOutOfOrder = (pairs) =>
  pairs.filter(([one, next]) => !(next > one)).length / pairs.length;

const pairsOf = (items) => items.slice(1).map((next, i) => [items[i], next]);

/** Draws `count` IDs in each of several processes, all at once. */
export async function duplicates(kind, numbers, count) {
  const parts = await withProcesses(kind, numbers, (processes) =>
    Promise.all(processes.map((each) => call(each, 'drawCount', count))),
  );
  const ids = parts.flat();
  return { ids: ids.length, duplicates: countDuplicates(ids) };
}

/** A loop in one process: the share of neighbours out of order. */
function orderOfLoop(kind, count) {
  return withProcesses(kind, [undefined], async ([one]) =>
    shareOutOfOrder(pairsOf(await call(one, 'drawCount', count))),
  );
}

/** The share of neighbours out of order, of processes that draw an ID every ms or two. Of draws that did not overlap. */
export function orderOfMany(kind, numbers, ms) {
  return withProcesses(kind, numbers, async (processes) => {
    const parts = await Promise.all(processes.map((each) => call(each, 'drawPaced', ms)));
    const drawn = parts.flat().sort((a, b) => a.after - b.after);
    const pairs = pairsOf(drawn).filter(([one, next]) => one.after < next.before);
    return shareOutOfOrder(pairs.map(([one, next]) => [one.id, next.id]));
  });
}

/** Of the IDs after a rollback: how many were drawn before, and how many are not above all those. */
function judge({ before, after, failures }) {
  const seen = new Set(before);
  const high = before.reduce((a, b) => (a > b ? a : b));
  return {
    after: after.length,
    failures,
    repeated: after.filter((id) => seen.has(id)).length + countDuplicates(after),
    below: after.filter((id) => !(id > high)).length,
  };
}

/** A process whose clock goes back by 5 s, to ms in which it has drawn; on a Machine. */
export function rollback(kind, machine, ms) {
  machine.clock = 0;
  const around = async ([one]) => judge(await call(one, 'drawAroundRollback', ms));
  return withProcesses(kind, [undefined], around, machine.env);
}

/** A process that ends, and another one whose clock has gone back to the ms in which the first one drew. */
export async function restart(kind, machine, ms) {
  machine.clock = 0;
  const start = Date.now() + LEAD;
  const run = () =>
    withProcesses(kind, [numberOf(kind)], ([one]) => call(one, 'drawFrom', start, ms), machine.env);
  const first = await run();
  // Both open their generators some seconds before.
  machine.clock = start - Date.now() - LEAD;
  const second = await run();
  return judge({ before: first.ids, after: second.ids, failures: second.failures });
}

export async function behaviour({ isQuick }) {
  const [count, ms] = isQuick ? [10_000, 100] : [100_000, 300];
  const names = namesHere();
  const inProcess = names.filter((kind) => !KINDS[kind].isAsync);
  const numbered = inProcess.filter((kind) => KINDS[kind].numbers > 0);
  /** Each kind on its own, one after the other. */
  const each = async (chosen, run) => {
    const results = {};
    for (const kind of chosen) results[kind] = await run(kind);
    return results;
  };
  const asShown = Array(PROCESSES).fill(undefined);
  const own = asShown.map((_, i) => i + 1);
  const same = asShown.map(() => 3);
  const results = {
    ...{ count, ms, processes: PROCESSES },
    loop: await each(names, (kind) => orderOfLoop(kind, KINDS[kind].isAsync ? count / 10 : count)),
    order: {
      asShown: await each(names, (kind) => orderOfMany(kind, asShown.slice(0, 4), ms * 10)),
      own: await each(numbered, (kind) => orderOfMany(kind, own.slice(0, 4), ms * 10)),
    },
    duplicates: {
      asShown: await each(inProcess, (kind) => duplicates(kind, asShown, count)),
      own: await each(numbered, (kind) => duplicates(kind, own, count)),
      same: await each(numbered, (kind) => duplicates(kind, same, count)),
    },
  };
  if (process.platform !== 'linux') return results;
  if (missing()) {
    execFileSync('cargo', ['build', '--locked', '--quiet', '--package', 'machine-shim']);
  }
  const machine = new Machine();
  results.rollback = await each(inProcess, (kind) => rollback(kind, machine, ms));
  results.restart = await each(inProcess, (kind) => restart(kind, machine, ms));
  machine.remove();
  return results;
}
