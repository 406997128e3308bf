'use strict';
// How generators of one kind behave: whether processes and threads draw the same IDs, in which order, and what
// happens when the clock goes back. By comparing IDs.

const { once } = require('node:events');
const { join } = require('node:path');
const { Worker } = require('node:worker_threads');

require('../../__test__/support/own-directory.js');
const { Peer } = require('../../__test__/support/peer.js');

const TASKS = join(__dirname, 'tasks.cjs');
/** So long before it draws, in ms of its clock, a process starts: more than that takes. */
const LEAD = 10_000;

/** Calls a function of tasks.cjs in a process. */
const call = (process, task, ...values) =>
  process.run(
    (scene, path, name, given) => scene.require(path)[name](...given),
    TASKS,
    task,
    values,
  );

/** Processes, ended after `act`. */
async function withPeers(count, act, env = {}) {
  const processes = Array.from({ length: count }, () => new Peer({ env }));
  try {
    return await act(processes);
  } finally {
    await Promise.all(processes.map((each) => each.end()));
  }
}

/** Processes with a generator each. */
function withProcesses(kind, numbers, act, env) {
  const opened = async (processes) => {
    await Promise.all(processes.map((each, i) => call(each, 'open', kind, numbers[i])));
    return act(processes);
  };
  return withPeers(numbers.length, opened, env);
}

/** Of IDs in order: how many are equal to an earlier one. */
function countDuplicates(ids) {
  return ids.length - new Set(ids).size;
}

/**
 * Draws `count` IDs in each of several processes or threads, all at once.
 * @param numbers the number of each generator, or undefined for what its README shows
 */
async function duplicates(kind, numbers, count, { isThread } = {}) {
  const parts = isThread
    ? await drawInThreads(kind, numbers, count)
    : await withProcesses(kind, numbers, (processes) =>
        Promise.all(processes.map((each) => call(each, 'drawCount', count))),
      );
  const ids = parts.flat();
  return { ids: ids.length, duplicates: countDuplicates(ids) };
}

async function drawInThreads(kind, numbers, count) {
  const threads = numbers.map(
    (number) => new Worker(TASKS, { workerData: { peer: kind, number, count } }),
  );
  await Promise.all(threads.map((thread) => once(thread, 'message')));
  for (const thread of threads) thread.postMessage('go');
  const answers = await Promise.all(threads.map((thread) => once(thread, 'message')));
  await Promise.all(threads.map((thread) => thread.terminate()));
  return answers.map(([ids]) => ids);
}

/** Of IDs in the order in which they were drawn: the share that is not above the one before. */
function shareOutOfOrder(pairs) {
  return pairs.filter(([one, next]) => !(next > one)).length / pairs.length;
}

/** A loop in one process: the share of neighbours out of order, and the IDs that repeat. */
async function loop(kind, count) {
  return withProcesses(kind, [undefined], async ([one]) => {
    const ids = await call(one, 'drawCount', count);
    const outOfOrder = shareOutOfOrder(ids.slice(1).map((id, i) => [ids[i], id]));
    return { ids: ids.length, duplicates: countDuplicates(ids), outOfOrder };
  });
}

/** The share of neighbours out of order, of processes that draw an ID every ms or two. Of draws that did not overlap. */
async function orderOfMany(kind, numbers, ms) {
  return withProcesses(kind, numbers, async (processes) => {
    const parts = await Promise.all(processes.map((each) => call(each, 'drawPaced', ms)));
    const drawn = parts.flat().sort((a, b) => a.after - b.after);
    const pairs = drawn
      .slice(1)
      .map((next, i) => [drawn[i], next])
      .filter(([one, next]) => one.after < next.before);
    return shareOutOfOrder(pairs.map(([one, next]) => [one.id, next.id]));
  });
}

const largest = (ids) => ids.reduce((a, b) => (a > b ? a : b));

/** Of the IDs after a rollback: how many were drawn before, and how many are not above all those. */
function judge({ before, after, failures }) {
  const seen = new Set(before);
  const high = largest(before);
  return {
    before: before.length,
    after: after.length,
    failures,
    repeated: after.filter((id) => seen.has(id)).length + countDuplicates(after),
    below: after.filter((id) => !(id > high)).length,
  };
}

/** A process whose clock goes back by 5 s, to ms in which it has drawn; on a Machine. */
function rollback(kind, machine, { ms = 200, isLoop = true } = {}) {
  machine.clock = 0;
  const around = async ([one]) => judge(await call(one, 'drawAroundRollback', ms, isLoop));
  return withProcesses(kind, [undefined], around, machine.env);
}

/** A process that ends, and another one whose clock has gone back to the ms in which the first one drew. */
async function restart(kind, machine, { number, ms = 200 } = {}) {
  machine.clock = 0;
  const run = (act) => withProcesses(kind, [number], ([one]) => act(one), machine.env);
  const start = Date.now() + LEAD;
  const first = await run((one) => call(one, 'drawFrom', start, ms, true));
  // Both open their generators some seconds before.
  machine.clock = start - Date.now() - LEAD;
  const second = await run((one) => call(one, 'drawFrom', start, ms, true));
  return judge({ before: first.ids, after: second.ids, failures: second.failures });
}

/**
 * Two processes that draw in the same ms, and whose clock then goes back; of each request what `drawUnderClock` of the
 * tasks takes, with the `numbers` of both. Returns for each: `repeated` by the other process, and what happened in one.
 */
async function underClock(requests) {
  const parts = await Promise.all(
    [0, 1].map((which) =>
      withPeers(1, async ([one]) => {
        const answers = [];
        for (const { numbers = [], ...request } of requests) {
          answers.push(await call(one, 'drawUnderClock', { ...request, number: numbers[which] }));
        }
        return answers;
      }),
    ),
  );
  return requests.map((_, i) => {
    const [one, other] = parts.map((answers) => answers[i]);
    const { repeated } = judge({ before: one.before, after: other.before, failures: {} });
    return { repeated, rollback: judge(one) };
  });
}

module.exports = { duplicates, loop, orderOfMany, restart, rollback, underClock };
