'use strict';
// A Redis Cluster of six processes: three masters, and a replica of each.

const { Server, freePort } = require('./servers.js');
const { until } = require('../support.js');

const MASTERS = 3;
const SLOTS = 16_384;
/** A master that is silent for so long has failed, ms. */
const NODE_TIMEOUT = 1000;

const ARGS = [
  ...['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'],
  ...['--cluster-node-timeout', String(NODE_TIMEOUT)],
  // A replica takes its master's place however old its copy is.
  ...['--cluster-replica-validity-factor', '0'],
];

class RedisCluster {
  /** Each has `server`, the port of its `bus`, `client`, a connection to it, and `isDown`. */
  #nodes = [];
  #lagging;

  static async start() {
    const cluster = new RedisCluster();
    const { default: Redis } = require('ioredis');
    try {
      for (let n = 0; n < 2 * MASTERS; n++) {
        const ports = [await freePort(), await freePort()];
        const bus = String(ports[1]);
        const server = await Server.start('redis', {
          ports,
          args: [...ARGS, '--cluster-port', bus],
        });
        const client = new Redis(server.url);
        client.on('error', () => {});
        cluster.#nodes.push({ server, client, bus });
      }
      await cluster.#join();
    } catch (failure) {
      await cluster.stop();
      throw failure;
    }
    return cluster;
  }

  get #clients() {
    return this.#nodes.map(({ client }) => client);
  }

  async #join() {
    const [first, ...others] = this.#clients;
    const size = Math.ceil(SLOTS / MASTERS);
    for (let n = 0; n < MASTERS; n++) {
      const from = n * size;
      const count = Math.min(size, SLOTS - from);
      const slots = Array.from({ length: count }, (_, slot) => from + slot);
      await this.#clients[n].cluster('ADDSLOTS', ...slots);
    }
    for (const { server, bus } of this.#nodes.slice(1)) {
      await first.cluster('MEET', '127.0.0.1', String(server.port), bus);
    }
    const ids = await Promise.all(this.#clients.map((client) => client.cluster('MYID')));
    const knowsAll = async (client) => {
      const known = await client.cluster('NODES');
      return ids.every((id) => known.includes(id)) && !known.includes('handshake');
    };
    for (const client of this.#clients) await until(() => knowsAll(client));
    for (const [n, client] of others.slice(MASTERS - 1).entries()) {
      await client.cluster('REPLICATE', ids[n]);
    }
    const isOk = async (client) => /cluster_state:ok/.test(await client.cluster('INFO'));
    for (const client of this.#clients) await until(() => isOk(client));
    for (const client of others.slice(MASTERS - 1)) {
      await until(async () => /master_link_status:up/.test(await client.info('replication')));
    }
  }

  get engine() {
    return 'redis-cluster';
  }

  /** Names all masters of the start. */
  get url() {
    const [first, ...others] = this.#nodes.slice(0, MASTERS).map(({ server }) => server.port);
    const hosts = others.map((port) => `&host=127.0.0.1:${port}`);
    return `redis://127.0.0.1:${first}?cluster=true${hosts.join('')}`;
  }

  /** Of each node. */
  get urls() {
    return this.#nodes.map(({ server }) => server.url);
  }

  get pids() {
    return this.#nodes.map(({ server }) => server.pid);
  }

  /** The master of the key of a namespace, and its replica. */
  async #shardOf(namespace) {
    const living = this.#nodes.filter(({ isDown }) => !isDown);
    const slot = await living[0].client.cluster('KEYSLOT', `snowdrift:${namespace}:records`);
    const shards = await living[0].client.cluster('SLOTS');
    const [, , master, replica] = shards.find(([from, to]) => from <= slot && slot <= to);
    const nodeOf = (one) => one && this.#nodes.find(({ server }) => server.port === one[1]);
    return { master: nodeOf(master), replica: nodeOf(replica) };
  }

  /** Kills the master of a namespace, and waits until its replica has taken its place. */
  async failOver(namespace = 'default') {
    const { master, replica } = await this.#shardOf(namespace);
    master.isDown = true;
    await master.server.kill();
    await until(async () => (await this.#shardOf(namespace)).master === replica);
    this.#lagging = undefined;
    return master;
  }

  /** Starts a master again that was killed: it becomes a replica. */
  async rejoin(node) {
    await node.server.run();
    node.isDown = false;
    await until(async () =>
      /master_link_status:up/.test(await node.client.info('replication').catch(() => '')),
    );
  }

  /** From here on, the replica of a namespace gets nothing. */
  async backUp(namespace = 'default') {
    const { master, replica } = await this.#shardOf(namespace);
    await master.client.call('ACL', 'SETUSER', 'default', '-psync', '-sync');
    await master.client.call('CLIENT', 'KILL', 'TYPE', 'replica');
    await until(async () => !/state=online/.test(await master.client.info('replication')));
    this.#lagging = { master, replica };
  }

  /** Loses all that was confirmed since: that replica takes its master's place. */
  async restore(namespace = 'default') {
    if (this.#lagging === undefined) throw new Error('no replica lags');
    await this.failOver(namespace);
  }

  /** To all nodes. */
  signal(name) {
    for (const { server } of this.#nodes) server.signal(name);
  }

  async stop() {
    for (const { client } of this.#nodes) client.disconnect();
    await Promise.all(this.#nodes.map(({ server }) => server.stop()));
  }
}

module.exports = { RedisCluster };
