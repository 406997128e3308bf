'use strict';
// A register in ZooKeeper, through the optional second addon, `snowdrift-zookeeper`.
//
//   /snowdrift/NAMESPACE/records/FOLDER             the key up to its last '/', percent-encoded
//   /snowdrift/NAMESPACE/records/FOLDER/NAME        the rest of the key, with the record, `TOKEN TEXT`
//   /snowdrift/NAMESPACE/records/FOLDER/NAME/TOKEN  its only child: the condition of the next write
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
//
// A list reads the names of a folder's keys at once, and those of all folders. ZooKeeper bounds such a reply
// (`jute.maxbuffer`, 1 MB by default): 20,000 names fit, 100,000 do not.

const { wholeNumber } = require('../messages/checks.js');
const { readOptions } = require('./options.js');
const { createClient } = require('./zookeeper-client.js');
const { createRegister, decode, encode } = require('./register.js');

/** The parent of all namespaces. A write to it returns the ensemble's clock. */
const TOP = '/snowdrift';

/** The name of a znode: never empty, and without '.', since '.' and '..' are no names. */
const nameOf = (text) => `_${encodeURIComponent(text).replaceAll('.', '%2E')}`;
const textOf = (name) => decodeURIComponent(name.slice(1));
const NAMESPACE = `records/${nameOf('')}/${nameOf('namespace')}`;
const folderOf = (key) => key.slice(0, key.lastIndexOf('/') + 1);

function zookeeper(ensemble, options) {
  const names = ['namespace', 'port', 'user', 'password', 'tls'];
  const { namespace, port, ...access } = readOptions(options, names);
  if (port !== undefined) wholeNumber('port', port, 0, 65_535);
  const root = `${TOP}/${namespace}/records`;
  const holders = `${TOP}/${namespace}/holders`;
  const { session, close } = createClient(ensemble, access, (zk) => zk.make(root));
  const name = `zookeeper:${ensemble}/${namespace}`;
  const pathOf = (key) => {
    const folder = folderOf(key);
    return `${root}/${nameOf(folder)}/${nameOf(key.slice(folder.length))}`;
  };
  const recordOf = async (zk, key) => decode(name, key, await zk.get(pathOf(key)));
  /** By path of a holder's node: the session that created it. */
  const shown = new Map();

  return createRegister({
    name,
    notesErrors: true,
    close,
    now: async (signal) => (await session(signal)).touch(TOP),

    async read(key, signal) {
      const zk = await session(signal);
      const now = await zk.touch(TOP);
      return { record: await recordOf(zk, key), now };
    },

    async write(key, record, before, signal) {
      const zk = await session(signal);
      const path = pathOf(key);
      const data = encode(record);
      if (before === undefined) await zk.make(`${root}/${nameOf(folderOf(key))}`);
      const replacement = [
        { kind: 'delete', path: `${path}/${before}` },
        { kind: 'set', path, data },
      ];
      const { isDone, time: now } = await zk.change([
        ...(before === undefined ? [{ kind: 'create', path, data }] : replacement),
        { kind: 'create', path: `${path}/${record.token}` },
        { kind: 'set', path: TOP },
      ]);
      if (isDone) return { isWritten: true, now };
      return { isWritten: false, found: await recordOf(zk, key) };
    },

    /** A session creates the znodes of a namespace, also where that has no record. */
    async namespaces(signal) {
      const zk = await session(signal);
      const names = await zk.children(TOP);
      const found = await Promise.all(names.map((each) => zk.get(`${TOP}/${each}/${NAMESPACE}`)));
      return names.filter((_, n) => found[n]);
    },

    async list(prefix, signal) {
      const zk = await session(signal);
      const now = await zk.touch(TOP);
      const folders = (await zk.children(root)).map(textOf);
      const keysOf = async (folder) => {
        const names = await zk.children(`${root}/${nameOf(folder)}`);
        return names.map((each) => folder + textOf(each));
      };
      const near = folders.filter((each) => each.startsWith(prefix) || prefix.startsWith(each));
      const keys = (await Promise.all(near.map(keysOf))).flat();
      const found = keys.filter((key) => key.startsWith(prefix));
      const read = async (key) => [key, await recordOf(zk, key)];
      return { records: new Map(await Promise.all(found.map(read))), now };
    },

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

module.exports = { zookeeper };
