'use strict';
// What a process or a thread does with its generator of one kind. As the script of a worker thread, it
// opens one, waits until all have, and draws.

const { closeSync, openSync, readSync, writeSync } = require('node:fs');
const { isMainThread, parentPort, workerData } = require('node:worker_threads');
const kinds = require('./kinds.cjs');

const TURN = 1000;
const turn = () => new Promise((resolve) => setImmediate(resolve));
const now = () => Number(process.hrtime.bigint());

let kind;
let draw;

/** Opens a generator, and draws once, so that all is loaded and compiled. */
async function open(name, number) {
  kind = name;
  draw = await kinds.open(kind, number);
  await draw();
}

/** Draws `count` IDs in a loop, with a turn of the event loop after each 1,000. */
async function drawCount(count) {
  const { isAsync } = kinds.KINDS[kind];
  const ids = [];
  while (ids.length < count) {
    const id = isAsync ? await draw() : draw();
    ids.push(kinds.stored(kind, id));
    if (ids.length % TURN === 0) await turn();
  }
  return ids;
}

/** Draws one ID every ms or two: each with the time before and after, on a clock that processes share. */
async function drawPaced(ms) {
  const drawn = [];
  const end = now() + ms * 1e6;
  while (now() < end) {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 2));
    const before = now();
    const id = await draw();
    drawn.push({ before, after: now(), id: kinds.stored(kind, id) });
  }
  return drawn;
}

/**
 * Draws for `ms`, in a loop, or one ID a ms. Returns the IDs, and by message how many draws failed.
 * @param isLoop whether to draw as fast as it goes
 */
async function drawFor(ms, isLoop) {
  const ids = [];
  const failures = {};
  const end = performance.now() + ms;
  while (performance.now() < end) {
    for (let i = 0; i < (isLoop ? 100 : 1); i++) {
      try {
        ids.push(kinds.stored(kind, draw()));
      } catch (error) {
        // Times differ from draw to draw.
        const message = error.message.replaceAll(/\d+/g, 'N');
        failures[message] = (failures[message] ?? 0) + 1;
      }
    }
    await (isLoop ? turn() : new Promise((resolve) => setTimeout(resolve, 1)));
  }
  return { ids, failures };
}

/** Sets the clock of a Machine of the tests. */
function setClock(time) {
  const shim = openSync(process.env.MACHINE_SHIM, 'r+');
  const offset = new BigInt64Array(1);
  readSync(shim, offset, 0, 8, 0);
  offset[0] += BigInt(time - Date.now()) * 1_000_000n;
  writeSync(shim, offset, 0, 8, 0);
  closeSync(shim);
}

/** Draws for `ms` from a time on, which the clock is set to. */
function drawFrom(start, ms, isLoop) {
  setClock(start);
  return drawFor(ms, isLoop);
}

/** Draws for `ms`. 5 s later the clock goes back by 5 s and a little, to the ms in which it began, and it draws again. */
async function drawAroundRollback(ms, isLoop) {
  const start = Date.now();
  const before = await drawFor(ms, isLoop);
  setClock(start + 5000);
  before.ids.push(kinds.stored(kind, draw()));
  const after = await drawFrom(start, ms, isLoop);
  return { before: before.ids, after: after.ids, failures: after.failures };
}

/**
 * A generator of its own under a clock that JavaScript is shown: draws `each` IDs in each of `steps` ms from `start` on,
 * one 5 s later, and then the clock goes back to `start`. So all processes that do this draw in the same ms.
 */
async function drawUnderClock({ kind: name, number, start, steps, each }) {
  const Real = Date;
  let time = start;
  globalThis.Date = class extends Real {
    constructor(...given) {
      super(...(given.length === 0 ? [time] : given));
    }
    static now = () => time;
  };
  const failures = {};
  try {
    const drawOwn = await kinds.open(name, number);
    const drawAll = () => {
      const ids = [];
      for (time = start; time < start + steps; time++) {
        for (let i = 0; i < each; i++) {
          try {
            ids.push(kinds.stored(name, drawOwn()));
          } catch ({ message }) {
            failures[message] = (failures[message] ?? 0) + 1;
          }
        }
      }
      return ids;
    };
    const before = drawAll();
    time = start + 5000;
    before.push(kinds.stored(name, drawOwn()));
    return { before, after: drawAll(), failures };
  } finally {
    globalThis.Date = Real;
  }
}

module.exports = {
  drawAroundRollback,
  drawCount,
  drawFor,
  drawFrom,
  drawPaced,
  drawUnderClock,
  open,
};

if (!isMainThread && workerData?.peer) {
  const { peer, number, count } = workerData;
  open(peer, number).then(() => {
    parentPort.once('message', async () => parentPort.postMessage(await drawCount(count)));
    parentPort.postMessage('ready');
  });
}
