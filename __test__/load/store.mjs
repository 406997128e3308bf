// The load of a fleet of leased processes on its store: real processes of several hosts on one real
// PostgreSQL. Prints the slots that they hold, and the server's statements per second.
//
//   node __test__/load/store.mjs [--hosts 8] [--processes 8] [--datacenters 2] [--ttl 30000] [--seconds 60]
//     [--scope process]
//
// Each host has a directory of pages of its own (SNOWDRIFT_SHARED), and the hosts share the datacenter IDs
// in turn: each has 32 worker IDs. Processes without a slot are counted by error code.

import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const require = createRequire(import.meta.url);
const pg = require('pg');
const { slotsOf } = require('../support/lease/namespaces.js');
const { Server } = require('../support/lease/servers.js');
const { Peer } = require('../support/peer.js');

/** Processes that start at once. */
const STARTING = 16;

const { values } = parseArgs({
  options: {
    hosts: { type: 'string', default: '8' },
    processes: { type: 'string', default: '8' },
    datacenters: { type: 'string', default: '2' },
    ttl: { type: 'string', default: '30000' },
    seconds: { type: 'string', default: '60' },
    scope: { type: 'string' },
  },
});
const [hosts, processes, datacenters, ttl, seconds] = [
  'hosts',
  'processes',
  'datacenters',
  'ttl',
  'seconds',
].map((name) => Number(values[name]));
const { scope } = values;

/** A server that counts statements. */
async function countingServer() {
  const server = await Server.start('postgres');
  const admin = await connect(server);
  await admin.query("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'");
  await admin.query(`ALTER SYSTEM SET max_connections = ${hosts * processes + 50}`);
  await admin.end();
  await server.kill();
  await server.run();
  const again = await connect(server);
  await again.query('CREATE EXTENSION pg_stat_statements');
  return { server, admin: again };
}

async function connect(server) {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  return client;
}

/** Starts a process of a host, which opens a lease. Returns 'open', or the code of the error. */
async function open(peer, url, host) {
  const options = { datacenterId: host % datacenters, ttl, ...(scope ? { scope } : {}) };
  return peer.run(
    async (scene, ...args) => {
      try {
        scene.flake = await scene.SnowFlake.lease(...args);
        return 'open';
      } catch ({ code }) {
        return code;
      }
    },
    url,
    options,
  );
}

const count = (all) =>
  all.reduce((counts, one) => Object.assign(counts, { [one]: (counts[one] ?? 0) + 1 }), {});

const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
const root = mkdtempSync(join(memory, 'snowdrift-bench-'));
const places = [];
for (let host = 0; host < hosts; host++) {
  const SNOWDRIFT_SHARED = join(root, String(host));
  mkdirSync(SNOWDRIFT_SHARED, { mode: 0o700 });
  for (let n = 0; n < processes; n++) places.push({ host, env: { SNOWDRIFT_SHARED } });
}
const { server, admin } = await countingServer();
const peers = [];
try {
  const outcomes = [];
  for (let from = 0; from < places.length; from += STARTING) {
    const opened = places.slice(from, from + STARTING).map(({ host, env }) => {
      const peer = new Peer({ env });
      peers.push(peer);
      return open(peer, server.url, host);
    });
    outcomes.push(...(await Promise.all(opened)));
  }
  // Warm-up: the processes' renewals spread over the ttl.
  await sleep(ttl / 3);
  await admin.query('SELECT pg_stat_statements_reset()');
  const before = performance.now();
  await sleep(seconds * 1000);
  const statements = await admin.query(
    "SELECT query, calls FROM pg_stat_statements WHERE query ILIKE '%snowdrift_%' AND query NOT ILIKE '%pg_stat%' ORDER BY calls DESC",
  );
  const elapsed = (performance.now() - before) / 1000;
  const slots = await slotsOf(server.url);
  const connections = await admin.query(
    "SELECT COUNT(*) AS open FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
  );
  const isChange = ({ query }) => /^\s*UPDATE/i.test(query);
  const rate = (rows) => rows.reduce((sum, { calls }) => sum + Number(calls), 0) / elapsed;
  console.log(
    `${hosts} hosts of ${processes} processes, ${datacenters} datacenter IDs, ttl ${ttl} ms, scope '${scope ?? 'auto'}'`,
  );
  console.log(`processes: ${JSON.stringify(count(outcomes))}`);
  console.log(
    `slots in use: ${slots.filter(({ isHeld }) => isHeld).length} of ${32 * datacenters}`,
  );
  console.log(`connections to the server: ${connections.rows[0].open}`);
  console.log(
    `in ${elapsed.toFixed(1)} s: ${rate(statements.rows).toFixed(2)} statements a second, ${rate(statements.rows.filter(isChange)).toFixed(2)} renewals a second`,
  );
} finally {
  for (const peer of peers) peer.kill('SIGKILL');
  await Promise.all(peers.map(({ ended }) => ended));
  await admin.end().catch(() => {});
  await server.stop();
  rmSync(root, { recursive: true, force: true });
}
