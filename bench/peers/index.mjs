// Compares snowdrift with other kinds of IDs: sizes in a database, order, duplicates, and what happens when the clock goes
// back. `npm run bench` alone measures their speed. With --save writes results/peers.json, docs/comparison.md and the
// README's table. Parts that are named are measured alone, and the others kept as they are in results/peers.json.
//
//   npm run bench -- peers [kinds sizes order duplicates rollback] [--quick] [--save]

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import { fileURLToPath } from 'node:url';
import { save as saveReadme } from '../readme.mjs';
import behaviour from './behaviour.cjs';
import kinds from './kinds.cjs';
import { sizes, versionIn } from './size.mjs';

const require = createRequire(import.meta.url);
const { Server, missing: missingServer } = require('../../__test__/support/lease/servers.js');
const { Machine, missing: missingMachine } = require('../../__test__/support/machine.js');

const { KINDS, open, stored, textOf, versionOf } = kinds;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const quick = process.argv.includes('--quick');
const save = process.argv.includes('--save');
const count = quick ? 10_000 : 100_000;
const rows = quick ? 20_000 : 200_000;
const PROCESSES = 8;
const ms = quick ? 100 : 300;

/** All tables fit in memory, as an index should. */
const ARGS = {
  postgres: ['-c', 'shared_buffers=256MB'],
  mysql: ['--innodb-buffer-pool-size=256M'],
};

/** A server, or undefined where it is not installed. */
async function started(engine) {
  const reason = missingServer(engine);
  if (reason === undefined) return Server.start(engine, { args: ARGS[engine] });
  console.log(`Without ${engine}: ${reason}`);
}

/** The number of a generator that stays itself: as one would run it. */
const numberOf = (kind) => (KINDS[kind].numbers > 0 ? 3 : undefined);

/** Each kind on its own, one after the other. */
async function each(names, measure) {
  const results = {};
  for (const kind of names) results[kind] = await measure(kind);
  return results;
}

const [postgres, mysql] = [await started('postgres'), await started('mysql')];
if (postgres) process.env.DATABASE_URL = postgres.url;
const names = Object.keys(KINDS).filter(
  (kind) => KINDS[kind].missing === undefined && (postgres || !KINDS[kind].isAsync),
);
const inProcess = names.filter((kind) => !KINDS[kind].isAsync);
const numbered = inProcess.filter((kind) => KINDS[kind].numbers > 0);
const asShown = Array(PROCESSES).fill(undefined);
const own = asShown.map((_, i) => i + 1);
const same = asShown.map(() => 3);
const { duplicates, loop, orderOfMany, restart, rollback } = behaviour;

const PARTS = {
  kinds: async () => ({
    kinds: await each(names, async (kind) => {
      const draw = await open(kind, numberOf(kind));
      const ids = [];
      for (let i = 0; i < 100; i++) ids.push(stored(kind, await draw()));
      return {
        version: versionOf(kind),
        numbers: KINDS[kind].numbers,
        // Of what a database stores: 128 bits for what is no bigint.
        bits: typeof ids[0] === 'bigint' ? 64 : 128,
        text: Math.max(...ids.map((id) => textOf(kind, id).length)),
        example: textOf(kind, ids.at(-1)),
      };
    }),
  }),

  async sizes() {
    const all = {};
    for (const [database, server] of Object.entries({ postgres, mysql })) {
      if (server) all[database] = await sizes(database, server.url, names, rows);
    }
    return { sizes: all };
  },

  order: async () => ({
    loop: await each(names, (kind) => loop(kind, KINDS[kind].isAsync ? count / 10 : count)),
    order: {
      asShown: await each(names, (kind) => orderOfMany(kind, asShown.slice(0, 4), ms * 10)),
      own: await each(numbered, (kind) => orderOfMany(kind, own.slice(0, 4), ms * 10)),
    },
  }),

  duplicates: async () => ({
    duplicates: {
      processes: await each(inProcess, (kind) => duplicates(kind, asShown, count)),
      threads: await each(inProcess, (kind) =>
        duplicates(kind, asShown, count, { isThread: true }),
      ),
      own: await each(numbered, (kind) => duplicates(kind, own, count)),
      same: await each(numbered, (kind) => duplicates(kind, same, count)),
    },
  }),

  async rollback() {
    if (process.platform !== 'linux') return {};
    if (missingMachine()) {
      execFileSync('cargo', ['build', '--locked', '--quiet', '--package', 'machine-shim']);
    }
    const machine = new Machine();
    const sparse = { ms, isLoop: false };
    const all = {
      rollback: await each(inProcess, (kind) => rollback(kind, machine, { ms })),
      sparseRollback: await each(inProcess, (kind) => rollback(kind, machine, sparse)),
      restart: await each(inProcess, (kind) =>
        restart(kind, machine, { ms, number: numberOf(kind) }),
      ),
    };
    machine.remove();
    return all;
  },
};

const chosen = Object.keys(PARTS).filter((part) => process.argv.includes(part));
const path = here('../results/peers.json');
const results = {
  ...(chosen.length > 0 && JSON.parse(readFileSync(path, 'utf8'))),
  date: new Date().toISOString().slice(0, 10),
  machine: {
    cpu: os.cpus()[0].model.trim(),
    cores: os.cpus().length,
    os: `${os.type()} ${os.release().split('-')[0]} ${os.arch()}`,
    node: process.version,
    ...(postgres && { postgres: await versionIn('postgres', postgres.url) }),
    ...(mysql && { mysql: await versionIn('mysql', mysql.url) }),
  },
  amounts: { count, rows, processes: PROCESSES, ms },
};
try {
  for (const part of chosen.length > 0 ? chosen : Object.keys(PARTS)) {
    console.log(`Measuring ${part} ...`);
    Object.assign(results, await PARTS[part]());
  }
} finally {
  await Promise.all([postgres?.stop(), mysql?.stop()]);
}

if (save) {
  writeFileSync(path, `${JSON.stringify(results, null, 2)}\n`);
  saveReadme();
  console.log('Saved results/peers.json, docs/comparison.md and README.md');
} else {
  console.log(JSON.stringify(results, null, 2));
}
process.exit(results.duplicates.processes.snowdrift.duplicates > 0 ? 1 : 0);
