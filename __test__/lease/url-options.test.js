'use strict';
// Options of a server's URL: those that its client does not know are refused before anything is sent, since misspelt
// options of TLS would send the password in clear text. Servers note what they get.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { noAddon } = require('../support/lease/servers.js');
const { impersonate } = require('../support/lease/impostor.js');
const { SnowFlake } = require('../support/support.js');

const PASSWORD = 'g3heim-4711';

/** Refused for all that do not take them. */
const UNKNOWN = [
  'tls=true',
  'TLS=1',
  'secure=true',
  'sslMode=require',
  'foo=bar',
  '=x',
  'toString=1',
];

/**
 * For each scheme: the remedy that an error names; what is refused; options by which the first bytes are no clear text;
 * options by which they are, as asked for, and what they then have.
 */
const SCHEMES = {
  postgres: {
    remedy: 'sslmode=verify-full',
    refused: [
      ...['sslmode=', 'sslmode=Require', 'sslmode=allow', 'sslmode=true', 'SSLMODE=require'],
      ...['ssl=', 'ssl=false', 'ssl=yes', 'ssl=require', 'sslrootcert=', 'channel_binding=require'],
      ...['sslmode=require&sslmode=disable', 'ssl=true&sslmode=disable', 'sslnegotiation=x'],
      ...['database=x', 'useSSL=true', 'password=x'],
    ],
    secure: [
      'sslmode=verify-full',
      'sslmode=require',
      'sslmode=prefer',
      'sslmode=no-verify',
      'ssl=true',
      'ssl=1',
    ],
    clear: [
      ['', PASSWORD],
      ['sslmode=disable', PASSWORD],
      ['ssl=0', PASSWORD],
    ],
  },
  mysql: {
    remedy: 'ssl={"verifyIdentity":true}',
    refused: [
      ...[
        'sslmode=verify-full',
        'ssl=',
        'ssl=true',
        'ssl=null',
        'ssl=0',
        'ssl=[]',
        'ssl=x',
        'SSL={}',
      ],
      ...['ssl={"verifyidentity":true}', 'ssl={"verifyIdentity":"true"}', 'ssl={}&ssl=false'],
      ...['user=x', 'host=x', 'stream=1', 'useSSL=true'],
    ],
    secure: ['ssl={}', 'ssl={"verifyIdentity":true}', 'ssl={"rejectUnauthorized":false}'],
    clear: [
      ['', 'app'],
      ['ssl=false', 'app'],
    ],
  },
  redis: {
    remedy: 'rediss://',
    refused: [
      ...['ssl=true', 'sslmode=require', 'tls=', 'tls=false', 'tls={}', 'tls=maybe', 'family=x'],
      ...[
        'lazyConnect=false',
        'password=x',
        'username=x',
        'tls=RedisCloudFixed&tls=RedisCloudFixed',
        ...['cluster=false', 'cluster=', 'host=h2:6379', 'cluster=true&db=1'],
      ],
    ],
    secure: ['tls=RedisCloudFixed'],
    clear: [['', PASSWORD]],
  },
  rediss: { remedy: 'rediss://', refused: ['tls=', 'tls=false', 'ssl=false'], secure: [''] },
  mongodb: {
    remedy: 'tls=true',
    refused: [
      ...['tls=', 'tls=yes', 'ssl=1', 'tls=true&tls=false', 'TLS=true', 'tlscafile=/x'],
      ...['sslmode=require', 'readpreference=primary', 'username=x', 'raw=true'],
    ],
    secure: ['tls=true', 'ssl=true'],
    clear: [
      ['', 'n=app'],
      ['tls=false', 'n=app'],
    ],
  },
  etcd: {
    remedy: 'etcds://',
    refused: ['ssl=true', 'cafile=x', 'ca=', 'ca=/x', 'key=/x'],
    clear: [['', PASSWORD]],
  },
  etcds: { remedy: 'etcds://', refused: ['ca=', 'ca=/x&ca=/y', 'cert='], secure: [''] },
  zookeeper: { remedy: 'zookeepers://', refused: ['ssl=true', 'ca=', 'ca=/x'] },
  zookeepers: { remedy: 'zookeepers://', refused: ['ca=', 'ca=/x&ca=/y'], secure: [''] },
};
/** Of schemes that are no engine's name. */
const ENGINE_OF = {
  ...{ postgresql: 'postgres', mariadb: 'mysql', rediss: 'redis' },
  ...{ etcds: 'etcd', zookeepers: 'zookeeper' },
};
SCHEMES.postgresql = SCHEMES.postgres;
SCHEMES.mariadb = SCHEMES.mysql;

/** The flag of TLS in the capabilities of MySQL's client. */
const CLIENT_SSL = 0x800;

/** How many bytes a client sends before TLS: those that ask for it. */
function startOf(engine, said) {
  if (engine === 'postgres') return 8;
  const asks = engine === 'mysql' && said.length >= 36 && said.readInt32LE(4) & CLIENT_SSL;
  return asks ? 36 : 0;
}

/** Whether a client has begun TLS. */
function isTls(engine, said) {
  const start = startOf(engine, said);
  // The record of a ClientHello.
  return said[start] === 0x16 && said[start + 1] === 3;
}

/** Whether a client's bytes are TLS, or ask for it, and no more. */
const isSecure = (engine, said) => said.length === startOf(engine, said) || isTls(engine, said);

for (const [scheme, { remedy, refused, secure = [], clear = [] }] of Object.entries(SCHEMES)) {
  describe(scheme, () => {
    const engine = ENGINE_OF[scheme] ?? scheme;
    let server;
    /** What a client sends before its connection ends. */
    let expected = PASSWORD;
    before(async () => {
      server = await impersonate(engine, {
        isEnough: (said) => isTls(engine, said) || said.includes(expected),
      });
    });
    after(() => server.close());

    const lease = (rest) =>
      SnowFlake.lease(`${scheme}://app:${PASSWORD}@127.0.0.1:${server.port}/x${rest}`, {
        datacenterId: 1,
        callTimeout: 60_000,
      }).then(
        () => assert.fail('it was not refused'),
        (error) => error,
      );

    test('what the client does not know is refused before it connects', async () => {
      const unknown = UNKNOWN.filter((options) => !secure.includes(options));
      const rests = [...unknown, ...refused].map((options) => `?${options}`);
      rests.push('#?ssl=true', '&ssl=true', '?namespace=a&namespace=b', '?namespace=');
      for (const rest of rests) {
        const { code, message } = await lease(rest);
        assert.equal(code, 'ERR_SNOWFLAKE_CONFIG', `${rest}: ${message}`);
        assert.doesNotMatch(message, new RegExp(PASSWORD));
        const [, option] = /^\?(\w+)/.exec(rest) ?? [];
        if (option === undefined) continue;
        assert.ok(message.includes(`'${option}'`) || message.includes(option), message);
        if (/tls|ssl/i.test(option) && !rest.includes('&'))
          assert.ok(message.includes(remedy), message);
      }
      assert.equal(server.said.length, 0, inspect(server.said.map(String)));
    });

    for (const options of secure) {
      test(`'${options}' sends nothing in clear text`, { skip: noAddon(engine) }, async () => {
        server.said.length = 0;
        expected = PASSWORD;
        await lease(options && `?${options}`);
        assert.ok(server.said.some((said) => isTls(engine, said)));
        for (const said of server.said) {
          assert.ok(isSecure(engine, said), inspect(said.toString('latin1')));
          assert.ok(!said.includes(PASSWORD));
        }
      });
    }

    for (const [options, text] of clear) {
      test(`'${options}' is clear text, as asked for`, async () => {
        server.said.length = 0;
        expected = text;
        await lease(options && `?${options}`);
        assert.ok(Buffer.concat(server.said).includes(text));
        assert.ok(server.said.some((said) => !isSecure(engine, said)));
      });
    }
  });
}

test('an unknown PGSSLMODE is refused, where the URL has none', async () => {
  const server = await impersonate('postgres', { isEnough: () => true });
  const before = process.env.PGSSLMODE;
  try {
    for (const [mode, options, code] of [
      ['Require', '', 'ERR_SNOWFLAKE_CONFIG'],
      ['Require', '?sslmode=disable', 'ERR_SNOWFLAKE_STORE'],
      ['disable', '', 'ERR_SNOWFLAKE_STORE'],
      ['', '', 'ERR_SNOWFLAKE_STORE'],
    ]) {
      process.env.PGSSLMODE = mode;
      const url = `postgres://app:${PASSWORD}@127.0.0.1:${server.port}/x${options}`;
      const leasing = SnowFlake.lease(url, { datacenterId: 1, callTimeout: 60_000 });
      await assert.rejects(leasing, { code });
    }
  } finally {
    if (before === undefined) delete process.env.PGSSLMODE;
    else process.env.PGSSLMODE = before;
    server.close();
  }
});

test('an option is not named beside a password, whose part it may be', async () => {
  for (const url of [`redis://h?password=a&${PASSWORD}`, `postgres://h?password=a&${PASSWORD}=x`]) {
    const { code, message } = await SnowFlake.lease(url, { datacenterId: 1 }).catch(
      (error) => error,
    );
    assert.equal(code, 'ERR_SNOWFLAKE_CONFIG');
    assert.ok(!message.includes(PASSWORD), message);
  }
});

test('a host whose name no host can have is in no error', async () => {
  const host = 'h'.repeat(30_000);
  for (const url of [
    `postgres://${host}/app`,
    `redis://app:${PASSWORD}@${host}`,
    `etcd://h,${host}`,
  ]) {
    const { code, message } = await SnowFlake.lease(url, { datacenterId: 1 }).catch(
      (error) => error,
    );
    assert.equal(code, 'ERR_SNOWFLAKE_CONFIG');
    assert.ok(message.length < 500, message);
  }
});
