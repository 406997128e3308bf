// Measures snowdrift and other kinds of IDs. Prints the tables of docs/comparison.md. With --save writes results.json, and
// from it the tables of README.md and docs/comparison.md. Parts that are not named stay as they are in results.json.
//
//   npm run bench [-- speed sizes behaviour] [--quick] [--save]
//   npm run bench -- tables                      writes the tables anew, and measures nothing

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import { fileURLToPath } from 'node:url';

import { blocks, read, record, write } from './tables.mjs';

const { Server, missing } = createRequire(import.meta.url)('../__test__/support/lease/servers.js');

/** All tables fit in memory, as an index should. */
const SERVERS = {
  postgres: ['-c', 'shared_buffers=256MB'],
  mysql: ['--innodb-buffer-pool-size=256M'],
};
const PARTS = {
  speed: './speed.mjs',
  sizes: './peers/sizes.mjs',
  behaviour: './peers/behaviour.mjs',
};

/** A server, or undefined where it is not installed. */
async function started(engine) {
  const reason = missing(engine);
  if (reason === undefined) return Server.start(engine, { args: SERVERS[engine] });
  console.log(`Without ${engine}: ${reason}`);
}

async function measure(parts, isQuick) {
  const folder = fileURLToPath(new URL('.', import.meta.url));
  if (!existsSync(`${folder}/node_modules`)) {
    console.log('Installing the peers ...');
    execFileSync('npm', ['ci', '--prefix', folder], { stdio: 'pipe' });
  }
  const [postgres, mysql] = [await started('postgres'), await started('mysql')];
  if (postgres) process.env.DATABASE_URL = postgres.url;
  const circumstances = {
    date: new Date().toISOString().slice(0, 10),
    machine: {
      cpu: os.cpus()[0].model.trim(),
      cores: os.cpus().length,
      os: `${os.type()} ${os.release().split('-')[0]} ${os.arch()}`,
      node: process.version,
    },
  };
  const results = {};
  try {
    for (const part of parts) {
      console.log(`Measuring ${part} ...`);
      const { [part]: run } = await import(PARTS[part]);
      const measured = await run({ isQuick, servers: { postgres, mysql } });
      results[part] = { ...circumstances, ...measured };
    }
  } finally {
    await Promise.all([postgres?.stop(), mysql?.stop()]);
  }
  return results;
}

const args = process.argv.slice(2);
if (args.includes('tables')) {
  write(read());
} else {
  const named = Object.keys(PARTS).filter((part) => args.includes(part));
  const parts = named.length > 0 ? named : Object.keys(PARTS);
  const results = await measure(parts, args.includes('--quick'));
  const all = { ...read(), ...results };
  console.log(Object.values(blocks(all)).join('\n\n'));
  console.table(all.speed.targets);
  if (args.includes('--save')) record(results);
  const repeats = [
    ...Object.values(all.behaviour.duplicates).map(({ snowdrift }) => snowdrift.duplicates),
    ...all.speed.targets.filter(({ unit }) => unit === 'duplicates').map(({ value }) => value),
  ];
  // Connections of autoincrement would keep this process alive.
  process.exit(repeats.some((count) => count > 0) ? 1 : 0);
}
