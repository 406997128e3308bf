'use strict';
// A register in ZooKeeper, through the optional second addon, `snowdrift-zookeeper`.
//
//   /snowdrift/NAMESPACE/records/namespace          a record, `TOKEN TEXT`
//   /snowdrift/NAMESPACE/records/DATACENTER-BUCKET  likewise
//   /snowdrift/NAMESPACE/records/.../TOKEN          its only child: the condition of the next write
//   /snowdrift/NAMESPACE/holders/DATACENTER-WORKER  for people: who holds a slot, as JSON; ephemeral
//
// A write is one multi: it deletes the predecessor's token and creates its own. All of it is done, or nothing: without
// the predecessor there is nothing to delete. A version cannot be the condition. The ensemble counts it, so it returns to
// earlier values after a restore, and a set would then replace a record that its writer never read.
//
// A multi goes through the leader, and so does `touch`. A follower may lag, but it applies both before it answers, so
// what the same session reads afterwards is as fresh.
//
// The ensemble must keep what it has confirmed: no `forceSync=no`.

const { wholeNumber } = require('../messages/checks.js');
const { readOptions } = require('./options.js');
const { createClient } = require('./zookeeper-client.js');
const { createRegister, decode, encode } = require('./register.js');

/** @import { Change, Session } from '../../packages/zookeeper/addon-types.d.ts' */

/** The parent of all namespaces. */
const TOP = '/snowdrift';

/**
 * Writes to it, which returns the ensemble's clock. Creates it first if it is missing: an operator may delete it.
 * @param {Session} zk
 */
const touch = (zk) =>
  zk.touch(TOP).catch(async () => {
    await zk.make(TOP);
    return zk.touch(TOP);
  });

/** @type {typeof import('./zookeeper.d.ts').zookeeper} */
function zookeeper(ensemble, options) {
  const names = ['namespace', 'port', 'user', 'password', 'tls'];
  const { namespace, port, ...access } = readOptions(options, names);
  if (port !== undefined) wholeNumber('port', port, 0, 65_535);
  const root = `${TOP}/${namespace}/records`;
  const holders = `${TOP}/${namespace}/holders`;
  const { session, close } = createClient(ensemble, access);
  const name = `zookeeper:${ensemble}/${namespace}`;
  /** @param {string} key */
  const pathOf = (key) => `${root}/${key.replace('/', '-')}`;
  /**
   * @param {Session} zk
   * @param {string} key
   */
  const recordOf = async (zk, key) => decode(name, key, await zk.get(pathOf(key)));
  /** By path of a holder's node: the session that created it. @type {Map<string, Session>} */
  const shown = new Map();

  return createRegister({
    name,
    notesErrors: true,
    close,
    now: async (signal) => touch(await session(signal)),

    async read(key, signal) {
      const zk = await session(signal);
      const now = await touch(zk);
      return { record: await recordOf(zk, key), now };
    },

    async write(key, record, before, signal) {
      const zk = await session(signal);
      const path = pathOf(key);
      const data = encode(record);
      if (before === undefined) await zk.make(root);
      /** @type {Change} */
      const creation = { kind: 'create', path, data };
      /** @type {Change[]} */
      const replacement = [
        { kind: 'delete', path: `${path}/${before}` },
        { kind: 'set', path, data },
      ];
      const { isDone, time: now } = await zk.change([
        ...(before === undefined ? [creation] : replacement),
        { kind: 'create', path: `${path}/${record.token}` },
        { kind: 'set', path: TOP },
      ]);
      if (isDone) return { isWritten: true, now };
      return { isWritten: false, found: await recordOf(zk, key) };
    },

    namespaces: async (signal) => (await session(signal)).children(TOP),

    // A node that is there is another process's of the host, or of a session that is about to expire: the next renewal tries
    // again.
    async show({ datacenterId, workerId }, holder, signal) {
      const zk = await session(signal);
      const path = `${holders}/${datacenterId}-${workerId}`;
      if (holder === undefined) {
        const isOwn = shown.get(path) === zk;
        shown.delete(path);
        if (isOwn) await zk.change([{ kind: 'delete', path }]);
        return;
      }
      await zk.make(holders);
      signal.throwIfAborted();
      const data = JSON.stringify({ ...holder, port });
      const { isDone } = await zk.change([{ kind: 'createEphemeral', path, data }]);
      if (isDone) shown.set(path, zk);
    },
  });
}

/** @satisfies {typeof import('./zookeeper.js')} */
module.exports = { zookeeper };
