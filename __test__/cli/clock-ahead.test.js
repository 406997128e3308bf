'use strict';
// A clock that stood years ahead. The refusals name the files to remove, and then IDs go on. Those that were issued ahead are issued
// again only when their times come.

const assert = require('node:assert/strict');
const { existsSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');

const { endOf, start } = require('../support/cli.js');
const { onMachine } = require('../support/machine.js');
const { countDuplicates, entry, runScript } = require('../support/support.js');

const YEARS_MS = 2 * 365 * 86_400_000;
/** Without a clock-back counter. */
const LAYOUT = 'twitter';

/** Draws on the machine, in processes that are killed afterwards, so that their pages stay. Answers the IDs, or the refusal. */
function drawing(machine, options) {
  return async (count = 1000) => {
    const script = `
      const { SnowFlake, layouts } = require(${JSON.stringify(entry)});
      process.removeAllListeners('warning').on('warning', () => {});
      const options = { ...${JSON.stringify(options)}, layout: layouts.${LAYOUT}, datacenterId: 1, workerId: 3 };
      const answer = { ids: [] };
      let flake;
      try {
        flake = new SnowFlake(options);
      } catch ({ code, message }) {
        answer.refusal = { code, message };
      }
      (async () => {
        while (flake && answer.ids.length === 0) {
          try {
            answer.ids.push(...flake.nextIds(${count}));
          } catch ({ code, message, retryAfterMs }) {
            answer.refusal = { code, message, retryAfterMs };
            // It is being renewed.
            if (retryAfterMs > 10_000) break;
            await new Promise((resolve) => setTimeout(resolve, retryAfterMs));
          }
        }
        const text = JSON.stringify(answer, (_, value) => (typeof value === 'bigint' ? String(value) : value));
        require('node:fs').writeSync(1, text);
        process.kill(process.pid, 'SIGKILL');
      })();`;
    const { stdout, stderr, signal } = await runScript(script, { env: machine.env });
    assert.equal(signal, 'SIGKILL', stderr);
    return JSON.parse(stdout);
  };
}

/** The files that an error tells users to remove. */
function filesIn(message) {
  const [, files] = /end all processes of this node, and remove (.*)\. IDs that were/.exec(message);
  return files.split(' and ');
}

onMachine(
  'a page that a clock years ahead has used is named, and removed IDs go on',
  async ({ machine }) => {
    const draw = drawing(machine, {});
    const ids = await aheadWith(machine, draw);
    const { code, message } = (await draw()).refusal;
    assert.equal(code, 'ERR_SNOWFLAKE_CLOCK_BACK');
    assert.match(message, /If the clock is right now and was ahead before/);
    const files = filesIn(message);
    assert.deepEqual(
      files.map((file) => [file.slice(-5), existsSync(file)]),
      [
        ['.page', true],
        ['.born', true],
      ],
    );
    for (const file of files) rmSync(file);
    for (const ms of [0, YEARS_MS / 2]) {
      machine.clock = ms;
      ids.push(...(await draw()).ids);
    }
    assert.equal(ids.length, 4000);
    assert.equal(countDuplicates(ids), 0);
  },
);

/** IDs by a right clock, and by one that is years ahead. */
async function aheadWith(machine, draw) {
  const ids = [];
  for (const ms of [0, YEARS_MS]) {
    machine.clock = ms;
    ids.push(...(await draw()).ids);
  }
  machine.clock = 0;
  return ids;
}

onMachine(
  'a slot that a clock years ahead has used is kept by recover, and named',
  async ({ machine, state }) => {
    const url = pathToFileURL(state).href;
    const file = join(state, 'datacenter-1-worker-3.slot');
    const draw = drawing(machine, { state, ttl: 1000 });
    const command = async (name) => (await endOf(start([name, url], { env: machine.env }))).said;
    const ids = await aheadWith(machine, draw);
    // Its memory is lost, and with it the page.
    machine.boot = 2;
    const { code, message } = (await draw()).refusal;
    assert.equal(code, 'ERR_SNOWFLAKE_IN_USE');
    assert.ok(
      message.includes(`the line of workerId 3 in ${file} is damaged, or has times`),
      message,
    );
    assert.ok(message.includes(`snowdrift slots ${url} shows`), message);
    const ceiling = /has a ceiling that no holder can have: 20(2[89]|[3-9]\d)-/;
    assert.match(await command('slots'), ceiling);
    assert.match(await command('recover'), ceiling);
    assert.equal((await draw()).refusal.code, code, 'what was issued is kept');
    assert.equal(filesIn(message)[0], file);
    rmSync(file);
    // Above all that a right clock allowed: holders may have lost the file.
    const { refusal } = await draw();
    assert.ok(refusal.retryAfterMs < 60_000, refusal.message);
    machine.clock = 60_000;
    ids.push(...(await draw()).ids);
    assert.equal(ids.length, 3000);
    assert.equal(countDuplicates(ids), 0);
  },
);
