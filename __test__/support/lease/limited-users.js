'use strict';
// A user of each database who has no rights yet, and the client of an operator who grants them.

const withLogin = (server, login) => server.url.replace(/:\/\/(\w+@)?/, `://${login}@`);

const LIMITED = {
  postgres: {
    // The server's own user has the name of the docs'.
    user: 'limited',
    table: (name) => name,
    urlOf: (server) => withLogin(server, 'limited'),
    async admin(url) {
      const client = new (require('pg').Client)({ connectionString: url });
      await client.connect();
      await client.query('CREATE USER limited');
      return client;
    },
  },
  mysql: {
    user: 'app',
    table: (name) => `app.${name}`,
    urlOf: (server) => withLogin(server, 'app').replace(/\/mysql$/, '/app'),
    async admin(url) {
      const client = await require('mysql2/promise').createConnection({
        ...{ uri: url, multipleStatements: true, connectTimeout: 0 },
      });
      const [strangers] = await client.query("SELECT host FROM user WHERE user = ''");
      for (const { host } of strangers) await client.query("DROP USER ''@?", [host]);
      await client.query('CREATE DATABASE app; USE app; CREATE USER app');
      return client;
    },
  },
};

module.exports = { LIMITED, withLogin };
