'use strict';
// A register in ZooKeeper, through the optional second addon, `snowdrift-zookeeper`.
//
//   /snowdrift/NAMESPACE/records/FOLDER             the key up to its last '/', percent-encoded
//   /snowdrift/NAMESPACE/records/FOLDER/NAME        the rest of the key
//   /snowdrift/NAMESPACE/records/FOLDER/NAME/TOKEN  its only child: the record with this token, and the text as data
//
// A write is one multi: it deletes the predecessor's znode and creates its own. All of it is done, or nothing: without
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

const { readOptions } = require('./options.js');
const { createClient } = require('./zookeeper-client.js');
const { createRegister, decode } = require('./register.js');

/** The most tries of a read that other processes get ahead of. */
const MAX_TRIES = 1000;

/** The parent of all namespaces. A write to it returns the ensemble's clock. */
const TOP = '/snowdrift';

/** The name of a znode: never empty, and without '.', since '.' and '..' are no names. */
const nameOf = (text) => `_${encodeURIComponent(text).replaceAll('.', '%2E')}`;
const textOf = (name) => decodeURIComponent(name.slice(1));
const folderOf = (key) => key.slice(0, key.lastIndexOf('/') + 1);

function zookeeper(ensemble, options) {
  const { namespace, ...access } = readOptions(options, ['user', 'password', 'tls']);
  const root = `${TOP}/${namespace}/records`;
  const { session, close } = createClient(ensemble, access, (zk) => zk.make(root));
  const name = `zookeeper:${ensemble}/${namespace}`;
  const pathOf = (key) => {
    const folder = folderOf(key);
    return `${root}/${nameOf(folder)}/${nameOf(key.slice(folder.length))}`;
  };

  /** The record of a key, read again while others replace it. */
  async function get(zk, key, signal) {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      signal.throwIfAborted();
      let tokens = await zk.children(pathOf(key));
      if (tokens.length === 0) {
        if ((await zk.get(pathOf(key))) === null) return { record: undefined };
        // The key was created after its children were read.
        tokens = await zk.children(pathOf(key));
      }
      const znode =
        tokens.length === 1 ? await zk.get(`${pathOf(key)}/${tokens[0]}`) : { data: '' };
      if (znode !== null) return { record: decode(name, key, `${tokens.join()} ${znode.data}`) };
    }
    throw new Error(`other processes changed the same record first, ${MAX_TRIES} times`);
  }

  return createRegister({
    name,
    close,
    now: async (signal) => (await session({ signal })).touch(TOP),

    async read(key, signal) {
      const zk = await session({ signal });
      const now = await zk.touch(TOP);
      return { ...(await get(zk, key, signal)), now };
    },

    async write(key, { token, text }, before, signal) {
      const zk = await session({ signal });
      const path = pathOf(key);
      if (before === undefined) await zk.make(`${root}/${nameOf(folderOf(key))}`);
      const { isDone, time: now } = await zk.change([
        before === undefined
          ? { kind: 'create', path }
          : { kind: 'delete', path: `${path}/${before}` },
        { kind: 'create', path: `${path}/${token}`, data: text },
        { kind: 'set', path: TOP },
      ]);
      if (isDone) return { isWritten: true, now };
      return { isWritten: false, found: (await get(zk, key, signal)).record };
    },

    async list(prefix, signal) {
      const zk = await session({ signal });
      const now = await zk.touch(TOP);
      const folders = (await zk.children(root)).map(textOf);
      const keysOf = async (folder) => {
        const names = await zk.children(`${root}/${nameOf(folder)}`);
        return names.map((each) => folder + textOf(each));
      };
      const near = folders.filter((each) => each.startsWith(prefix) || prefix.startsWith(each));
      const keys = (await Promise.all(near.map(keysOf))).flat();
      const found = keys.filter((key) => key.startsWith(prefix));
      const read = async (key) => [key, (await get(zk, key, signal)).record];
      return { records: new Map(await Promise.all(found.map(read))), now };
    },
  });
}

module.exports = { zookeeper };
