'use strict';
// What a process does with its generator of one kind.

const { closeSync, openSync, readSync, writeSync } = require('node:fs');
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

/** Draws for `ms` in a loop. Returns the IDs, and by message how many draws failed. */
async function drawFor(ms) {
  const ids = [];
  const failures = {};
  const end = performance.now() + ms;
  while (performance.now() < end) {
    for (let i = 0; i < 100; i++) {
      try {
        ids.push(kinds.stored(kind, draw()));
      } catch (error) {
        // Times differ from draw to draw.
        const message = error.message.replaceAll(/\d+/g, 'N');
        failures[message] = (failures[message] ?? 0) + 1;
      }
    }
    await turn();
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
function drawFrom(start, ms) {
  setClock(start);
  return drawFor(ms);
}

/** Draws for `ms`. 5 s later the clock goes back by 5 s and a little, to the ms in which it began, and it draws again. */
async function drawAroundRollback(ms) {
  const start = Date.now();
  const before = await drawFor(ms);
  setClock(start + 5000);
  before.ids.push(kinds.stored(kind, draw()));
  const after = await drawFrom(start, ms);
  return { before: before.ids, after: after.ids, failures: after.failures };
}

module.exports = { drawAroundRollback, drawCount, drawFrom, drawPaced, open };
