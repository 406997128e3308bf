'use strict';
// How an operator deletes a namespace, by the store's own means.

const { loadAddon } = require('../../../js/addon.js');

const DELETE = {
  async postgres(url) {
    const client = new (require('pg').Client)({ connectionString: url });
    await client.connect();
    const tables = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'snowdrift%'";
    const names = (await client.query(tables)).rows.map(({ tablename }) => tablename);
    await client.query(`DROP TABLE ${names.join(', ')}`);
    await client.end();
  },

  async mysql(url) {
    const client = await require('mysql2/promise').createConnection(url);
    const [tables] = await client.query("SHOW TABLES LIKE 'snowdrift%'");
    await client.query(`DROP TABLE ${tables.map((row) => Object.values(row)[0]).join(', ')}`);
    await client.end();
  },

  async redis(url, namespace) {
    const client = new (require('ioredis'))(url);
    await client.del(`snowdrift:${namespace}`);
    client.disconnect();
  },

  async etcd(url, namespace) {
    const encode = (text) => Buffer.from(text).toString('base64');
    const range = {
      key: encode(`snowdrift/${namespace}/`),
      range_end: encode(`snowdrift/${namespace}0`),
    };
    const answer = await fetch(`${url.replace('etcd:', 'http:')}/v3/kv/deleterange`, {
      method: 'POST',
      body: JSON.stringify(range),
    });
    await answer.json();
  },

  async zookeeper(url, namespace) {
    const { directory, load } = require('snowdrift-zookeeper');
    const { connect } = loadAddon('snowdrift-zookeeper', directory, load);
    const session = await connect(url.slice('zookeeper://'.length), 10_000);
    /** Children first. */
    const below = async (path) => {
      const children = await session.children(path);
      const deeper = await Promise.all(children.map((child) => below(`${path}/${child}`)));
      return [...deeper.flat(), path];
    };
    const paths = await below(`/snowdrift/${namespace}`);
    const { isDone } = await session.change(paths.map((path) => ({ kind: 'delete', path })));
    session.close();
    if (!isDone) throw new Error('its nodes changed meanwhile');
  },
};

/** Deletes a namespace of a `Server`: of a database, all of them, with their tables. */
async function deleteNamespace(server, namespace) {
  await DELETE[server.engine](server.url, namespace);
}

module.exports = { deleteNamespace };
