'use strict';
// `snowdrift serve`: IDs by HTTP, like Twitter's Snowflake, a network service.

/**
 * @import { SnowFlake, SnowFlakeOptions } from '../../index.js'
 * @import { StoreSettings } from '../types.js'
 * @import { FlagsOf } from './flags.js'
 * @import { CommandIo, Io } from './main.js'
 *
 * @typedef {FlagsOf<typeof options>} ServeFlags
 */

const { lookup } = require('node:dns/promises');
const { BlockList } = require('node:net');
const { hostname } = require('node:os');

const { variable } = require('../messages/checks.js');
const { configError, describe } = require('../messages/errors.js');
const { learnPassword } = require('../messages/secrets.js');
const { readLeaseOptions } = require('../generator/options.js');
const { isServer } = require('../stores/url.js');
const { NODE_OPTIONS, openGenerator, readLease, readWholeNumber } = require('./flags.js');
const { withRecords } = require('./records.js');
const { MAX_COUNT } = require('../server/http.js');
const { listen } = require('../server/listen.js');
const { checkPeers } = require('../server/peers.js');
const { readStore } = require('./slots.js');
const { readSecret } = require('./store-url.js');

const PORT = 8080;
const HOST = '127.0.0.1';

const TOKEN = /^[\x21-\x7e]{16,512}$/;

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

const help = `Usage: snowdrift serve [--port N] [--host ADDRESS] [options]

Serves IDs by HTTP, for services in other languages, as JSON with IDs as strings:

  POST /id              {"id":"900833463518117888"}
  POST /ids?n=COUNT     {"ids":[...]}, up to the IDs of a tick, and up to ${MAX_COUNT}
  GET /parse/ID         the ID's fields
  GET /node             the datacenter and worker IDs, and the time in Unix ms
  GET /healthz          200 while it can issue IDs, else 503. Needs no token
  GET /metrics          metrics for Prometheus
  GET /openapi.json     the OpenAPI description

On SIGTERM or SIGINT it finishes the requests under way, releases its slot, and stops.

Server:
  --port N              0 to 65535, default ${PORT}; 0 picks a free port
  --host ADDRESS        default ${HOST}. Any but the loopback needs a token. It has no TLS
  --token-file FILE     holds the token, 16 to 512 visible ASCII characters. Clients send
                        Authorization: Bearer TOKEN. Default: the variable SNOWDRIFT_TOKEN
  --json                prints the address and the node as JSON

Lease and clock:
  --ttl MS              time that IDs continue if the store or the disk fails, 1000 to 3600000.
                        A killed server's slot is free 10000 ms after it, of a directory at once.
                        Default 30000, of a directory 10000, of s3: and gs: 180000
  --wait-for-slot MS    time to wait at the start for a slot that is held, 0 to 3600000.
                        Default 0, and --ttl + 5000 where --worker-id is claimed
  --clock-back HOW      after a clock rollback: counter (default), wait or throw. throw, and wait
                        beyond 10 ms, respond with 503. Without clock-back bits, wait is the default
  --address HOST:PORT   where its peers reach it: the servers of its datacenter that lease from the
                        same store. At the start, each asks its peers for their node and time, and
                        ends if these conflict with its own. Default: --host and --port
  --no-peers            does not ask the peers

Node and layout, as of snowdrift next (snowdrift help next):
  --datacenter-id, --worker-id, --state, --lease, --lease-file, --layout, --epoch`;

const options = /** @type {const} */ ({
  ...NODE_OPTIONS,
  port: { type: 'string' },
  host: { type: 'string' },
  'token-file': { type: 'string' },
  address: { type: 'string' },
  'no-peers': { type: 'boolean' },
  ttl: { type: 'string' },
  'wait-for-slot': { type: 'string' },
  'clock-back': { type: 'string' },
});

/**
 * The options of the generator, from flags.
 * @param {ServeFlags} flags
 * @returns {SnowFlakeOptions}
 */
function readGeneratorFlags({ ttl, 'wait-for-slot': wait, 'clock-back': clockBack }) {
  return {
    ...(ttl && { ttl: readWholeNumber('--ttl', ttl) }),
    ...(wait && { waitForSlot: readWholeNumber('--wait-for-slot', wait) }),
    ...(clockBack && { clockBack: /** @type {SnowFlakeOptions['clockBack']} */ (clockBack) }),
  };
}

/**
 * The clients' token; undefined if there is none. No error shows it.
 * @param {string | undefined} file
 */
async function readToken(file) {
  const token =
    file === undefined ? variable('SNOWDRIFT_TOKEN') : await readSecret('token-file', file);
  if (token === undefined) return undefined;
  if (!TOKEN.test(token)) {
    const source =
      file === undefined
        ? 'the environment variable SNOWDRIFT_TOKEN'
        : `the file '${file}' of --token-file`;
    throw configError(
      `${source} must hold 16 to 512 visible ASCII characters without spaces, such as openssl rand -hex 32 prints`,
    );
  }
  learnPassword(token);
  return token;
}

/**
 * The address to listen on.
 * @param {string} host
 * @param {string | undefined} token
 * @param {Io['usage']} usage
 */
async function readAddress(host, token, usage) {
  const { address, family } = await lookup(host).catch(({ code }) => {
    throw usage(
      `--host ${describe(host)} has no address (${code}): use an address of this machine`,
    );
  });
  if (token === undefined && !loopback.check(address, family === 6 ? 'ipv6' : 'ipv4')) {
    throw usage(
      `--host ${address} lets other machines generate IDs, so it needs a token: set SNOWDRIFT_TOKEN or --token-file`,
    );
  }
  return address;
}

/**
 * The address at which others reach the server, as far as it is known before it listens.
 * @param {string} host
 * @param {number} port
 */
function addressOf(host, port) {
  if (port === 0) return undefined;
  const name = host === '0.0.0.0' || host === '::' ? hostname() : host;
  return `${name.includes(':') ? `[${name}]` : name}:${port}`;
}

/**
 * Checks the other servers that lease from the same store.
 * @param {SnowFlake} flake
 * @param {ServeFlags} flags
 * @param {{ token?: string, complain: Io['complain'] }} options
 */
async function askPeers(flake, flags, options) {
  const lease = readLease(flags);
  if (lease === undefined || !isServer(lease.url)) return;
  const { slots } = await withRecords(lease.url, (records) =>
    readStore(records, flake.datacenterId),
  );
  const { leasing } = /** @type {StoreSettings} */ (readLeaseOptions({ datacenterId: 0 }));
  await checkPeers(slots, flake, { ...options, maxClockSkew: leasing.maxClockSkew });
}

/**
 * @param {ServeFlags} flags
 * @param {string[]} positionals
 * @param {CommandIo} io
 */
async function run(flags, positionals, { complain, print, usage }) {
  if (positionals.length > 0)
    throw usage(`serve takes no argument; remove ${describe(positionals[0])}`);
  const port = readWholeNumber('--port', flags.port, 0, 65_535) ?? PORT;
  const token = await readToken(flags['token-file']);
  const host = await readAddress(flags.host ?? HOST, token, usage);
  const address = flags.address ?? addressOf(host, port);
  const flake = await openGenerator(flags, readGeneratorFlags(flags), { address });
  try {
    if (flags['no-peers'] !== true) await askPeers(flake, flags, { token, complain });
    const { url, stop } = await listen(flake, { port, host, token, complain });
    // Before the URL is printed, since a supervisor may signal as soon as it reads it.
    const ended = new Promise((resolve) => {
      for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, resolve);
    });
    const { datacenterId, workerId } = flake;
    if (flags.json) print(JSON.stringify({ url, datacenterId, workerId }));
    else print(`${url} serves IDs of datacenterId ${datacenterId}, workerId ${workerId}`);
    await ended;
    await stop();
  } finally {
    await flake.close();
  }
}

module.exports = { help, options, run };
