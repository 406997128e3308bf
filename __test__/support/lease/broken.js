'use strict';
// A process that leases by connections that break after some bytes of the server. Prints as JSON what became of each
// lease, and what would have ended a process that does not look.
//
// Its environment: SERVER, a URL; CLIENT, one of CLIENTS; HOW connections break; BYTES, a list

const { setTimeout: sleep } = require('node:timers/promises');

const { SnowFlake, SnowFlakeError } = require('../../..');
const { Link } = require('./link.js');

const escaped = [];
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (thrown) => escaped.push(`${event}: ${thrown?.stack ?? thrown}`));
}

/** A store of an application's client, and how that is closed. */
const CLIENTS = {
  url: (url) => ({ store: url, end() {} }),
  async 'pg.Pool'(connectionString) {
    const pool = new (require('pg').Pool)({ connectionString });
    return { store: require('snowdrift/lease/postgres').postgres(pool), end: () => pool.end() };
  },
  async 'mysql2 pool'(uri, connectTimeout) {
    const pool = require('mysql2').createPool({ uri, connectTimeout });
    return { store: require('snowdrift/lease/mysql').mysql(pool), end: () => pool.end(() => {}) };
  },
  async ioredis(url) {
    const client = new (require('ioredis'))(url, { retryStrategy: null });
    return {
      store: require('snowdrift/lease/redis').redis(client),
      end: () => client.disconnect(),
    };
  },
  async redis(url) {
    const client = require('redis').createClient({ url, socket: { reconnectStrategy: false } });
    const store = require('snowdrift/lease/redis').redis(client);
    client.connect().catch(() => {});
    return { store, end: async () => client.destroy() };
  },
  async MongoClient(url, serverSelectionTimeoutMS) {
    const client = new (require('mongodb').MongoClient)(url, { serverSelectionTimeoutMS });
    return {
      store: require('snowdrift/lease/mongodb').mongodb(client),
      end: () => client.close(true),
    };
  },
};

const OPTIONS = { datacenterId: 1, ttl: 2000, maxClockSkew: 1000, scope: 'process' };

/** Takes a lease by a link. Returns 'held', the code of its error, or another error as text. */
async function lease(port, callTimeout, waitForSlot = 0) {
  const { SERVER, CLIENT } = process.env;
  let end = () => {};
  try {
    const own = await CLIENTS[CLIENT](SERVER.replace(/:\d+/, `:${port}`), callTimeout);
    end = own.end;
    const flake = await SnowFlake.lease(own.store, { ...OPTIONS, callTimeout, waitForSlot });
    await flake.close();
    return 'held';
  } catch (failure) {
    // Of connecting, an application's client tells the application.
    if (CLIENT !== 'url' && !(failure instanceof SnowFlakeError)) return 'not connected';
    return failure instanceof SnowFlakeError ? failure.code : String(failure?.stack);
  } finally {
    // Of a pool, it waits for connections that never come.
    Promise.resolve(end()).catch(() => {});
  }
}

async function breakAfter(bytes) {
  const link = await Link.to(new URL(process.env.SERVER).port);
  link.breakAfter(bytes, process.env.HOW);
  const outcome = await lease(link.port, 300);
  // What is late comes with the end of the connections.
  await sleep(50);
  link.close();
  return outcome;
}

(async () => {
  const left = JSON.parse(process.env.BYTES);
  const outcomes = new Set();
  const run = async () => {
    while (left.length > 0) outcomes.add(await breakAfter(left.pop()));
  };
  await Promise.all(Array.from({ length: 16 }, run));
  const { port } = new URL(process.env.SERVER);
  const afterwards = await lease(port, 60_000, 60_000);
  await sleep(200);
  console.log(JSON.stringify({ outcomes: [...outcomes].sort(), escaped, afterwards }));
  process.exit();
})();
