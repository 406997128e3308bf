'use strict';
// No output shows a password, a passphrase or a key that is an option of etcd() or zookeeper(), or a login before each
// server of a list. What the redactor leaves alone, and how long it takes.

const assert = require('node:assert/strict');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

const { SnowFlakeError } = require('../../js/errors.js');
const { learn, redactForeign } = require('../../js/secrets.js');
const { etcd } = require('../../js/stores/etcd.js');
const { zookeeper } = require('../../js/stores/zookeeper.js');
const { amount, storm } = require('../support/amount.js');
const { run } = require('../support/cli.js');
const { refusing } = require('../support/echo.js');
const { missing } = require('../support/lease/servers.js');
const { createPassword, everythingOf, hides, thrownBy } = require('../support/passwords.js');
const { SnowFlake } = require('../support/support.js');

const ROUNDS = amount(2, 8);

/** Options of etcd() with a secret at each position, right and wrong. */
const ETCD_OPTIONS = {
  password: ({ raw }) => ({ user: 'app', password: raw }),
  'a password alone': ({ raw }) => ({ password: raw }),
  'a password that is an object': ({ raw }) => ({ user: 'app', password: { raw } }),
  'a passphrase': ({ raw }) => ({ tls: { key: KEY, passphrase: raw } }),
  'a passphrase of a function': ({ raw }) => ({ tls: async () => ({ key: KEY, passphrase: raw }) }),
  'a passphrase that is a number': ({ number }) => ({ tls: { key: KEY, passphrase: number } }),
  'a passphrase that is an object': ({ raw }) => ({ tls: { key: KEY, passphrase: { raw } } }),
  'a passphrase that an error quotes': ({ raw }) => ({
    tls: { passphrase: raw, lookup: (_, __, done) => done(new Error(`${raw} was refused`)) },
  }),
  'a key': ({ raw }) => ({ tls: { key: raw, cert: raw } }),
  'keys with passphrases': ({ raw }) => ({ tls: { key: [{ pem: KEY, passphrase: raw }] } }),
  'a CA': ({ raw }) => ({ tls: { ca: raw } }),
  'a CA that is an object': ({ raw }) => ({ tls: { ca: { raw } } }),
  'an archive': ({ raw }) => ({ tls: { pfx: raw, passphrase: raw } }),
  'tls that is a text': ({ raw }) => ({ tls: raw }),
  'a misspelt option': ({ raw }) => ({ passwort: raw }),
};

/** Options `tls` of zookeeper(), likewise. */
const ZOOKEEPER_TLS = {
  'a key and a certificate': ({ raw }) => ({ key: raw, cert: raw }),
  'a key in PEM': ({ raw }) => ({ key: pemOf(raw), cert: pemOf(raw), ca: pemOf(raw) }),
  'a broken header': ({ raw }) => ({ key: `-----BEGIN ${raw}`, cert: `-----BEGIN ${raw}` }),
  'a CA': ({ raw }) => ({ ca: `-----BEGIN CERTIFICATE-----\n${raw}` }),
  'a key alone': ({ raw }) => ({ key: raw }),
  'a key that is an object': ({ raw }) => ({ key: { raw }, cert: { raw } }),
  'a passphrase': ({ raw }) => ({ key: raw, cert: raw, passphrase: raw }),
  'a text': ({ raw }) => raw,
  'a list': ({ raw }) => [raw],
  'a function':
    ({ raw }) =>
    async () => ({ key: raw, cert: raw }),
  'a function that returns a text':
    ({ raw }) =>
    () =>
      raw,
};
const pemOf = (text) => `-----BEGIN PRIVATE KEY-----\n${text}\n-----END PRIVATE KEY-----\n`;

/** No key, but long enough to be taken for one. */
const KEY = `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${'A'.repeat(64)}\n-----END ENCRYPTED PRIVATE KEY-----\n`;

/** The list of servers of a URL, with a login before each. */
const listsOf = (scheme, { raw, encoded }, where) => [
  `${scheme}://app:${encoded}@${where},app:${encoded}@${where}`,
  `${scheme}://app:other@${where},app:${encoded}@h2`,
  `${scheme}://app:${encoded}@${where},h2,app:other@h3`,
  `${scheme}://${encoded}@${where},${encoded}@h2`,
  `${scheme}://app:${raw}@${where},app:${raw}@h2`,
  `${scheme}://app:${encoded}@${where},h2:x`,
  `${scheme}://${where},app:${encoded}@`,
  `${scheme}://app:other@${where}?host=app:${encoded}@h2`,
];

describe('options of stores', () => {
  let server;
  before(async () => {
    server = await refusing('etcd');
  });
  after(() => server.close());

  const refusal = (create) =>
    thrownBy(async () =>
      SnowFlake.lease(await create(), { datacenterId: 1, callTimeout: 1500, scope: 'process' }),
    );

  test('no error shows a secret of an option of etcd()', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      for (const [position, create] of Object.entries(ETCD_OPTIONS)) {
        // A new one each time: another option may have made it known.
        const password = createPassword();
        const number = 100_000 + Math.floor(Math.random() * 1e12);
        const given = create({ ...password, number });
        const isKnown = position === 'password' || /passphrase/.test(position);
        server.say(isKnown ? `'${password.raw}' and ${password.encoded} were refused` : 'refused');
        const scheme = given.tls === undefined ? 'http' : 'https';
        for (const host of [`127.0.0.1:${server.port}`, '127.0.0.1:1', 'absent.invalid']) {
          const error = await refusal(() => etcd(`${scheme}://${host}`, given));
          assert.ok(error instanceof SnowFlakeError, `${position}: ${inspect(error)}`);
          const parts = [...password.parts, String(number)];
          hides({ ...password, parts }, everythingOf(error), `${position}, ${host}`);
        }
      }
    }
  });

  test('no error shows a login of a list of servers, in URLs, lists and commands', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const password = createPassword();
      const { encoded } = password;
      server.say(`'${password.raw}' was refused`);
      const where = `127.0.0.1:${server.port}`;
      for (const scheme of ['etcd', 'etcds', 'zookeeper', 'zookeepers']) {
        for (const url of listsOf(scheme, password, where)) {
          const error = await refusal(() => url);
          assert.ok(error instanceof SnowFlakeError, url);
          hides(password, everythingOf(error), url);
        }
      }
      for (const urls of [
        [`http://app:${encoded}@${where}`, 'http://h2'],
        [`http://app:${encoded}@${where}`, `http://app:${encoded}@127.0.0.1:1`],
        [`http://app:${encoded}@${where}`, 'http://app:other@h2'],
        [`http://${where}`, `http://app:${encoded}@h2`],
        [`http://${where}`, `app:${encoded}@h2`],
        [`http://app:${encoded}@${where}`, { url: `http://app:${encoded}@h2` }],
      ]) {
        const error = await refusal(() => etcd(urls));
        assert.ok(error instanceof SnowFlakeError, urls.join());
        hides(password, everythingOf(error), urls.join());
      }
    }
    const password = createPassword();
    const [url, , , , raw] = listsOf('etcd', password, '127.0.0.1:1');
    const env = { datacenterId: '1', SNOWDRIFT_SHARED: process.env.SNOWDRIFT_SHARED };
    for (const [args, more] of [
      [['next', '--lease', url], {}],
      [['slots', raw], {}],
      [['next'], { SNOWDRIFT_LEASE: url }],
    ]) {
      const { said, code } = await run(args, { env: { ...env, ...more } });
      assert.equal(code, 2, said);
      hides(password, said, args.join(' '));
    }
  });

  test('no error shows a secret of an option of zookeeper()', {
    skip: missing('zookeeper'),
  }, async () => {
    const closing = await refusing('zookeeper');
    for (let round = 0; round < ROUNDS; round++) {
      for (const create of [
        ({ raw }) => [`127.0.0.1:${closing.port}`, { user: 'app', password: raw }],
        ({ raw }) => ['127.0.0.1:1', { user: 'app', password: raw }],
        ({ raw }) => ['127.0.0.1:1', { password: raw }],
        ({ raw }) => ['127.0.0.1:1', { user: `app:${raw}`, password: 'x' }],
        ({ raw }) => ['127.0.0.1:1', { user: 'app', password: { raw } }],
        ...Object.values(ZOOKEEPER_TLS).map((position) => (password) => [
          `127.0.0.1:${closing.port}`,
          { tls: position(password) },
        ]),
        ({ encoded }) => [`app:${encoded}@127.0.0.1:1`],
        ({ encoded }) => [`${encoded}@127.0.0.1:1`],
        ({ raw }) => [`${raw}@127.0.0.1:1`],
        ({ raw }) => [`zookeeper://app:${raw}@127.0.0.1:1`],
      ]) {
        const password = createPassword();
        const [ensemble, options] = create(password);
        const error = await refusal(() => zookeeper(ensemble, options));
        assert.ok(error instanceof SnowFlakeError, inspect(error));
        hides(password, everythingOf(error), `${ensemble} ${inspect(options)}`);
      }
    }
    closing.close();
  });
});

test('a raw password with a malformed escape is removed as the server quotes it', () => {
  const password = { raw: 'Qfirsts %Qseconds', parts: ['Qfirsts', 'Qseconds'] };
  learn(new URL(`postgres://app:${password.raw}@db`));
  const { message } = new SnowFlakeError('ERR_SNOWFLAKE_STORE', `'${password.raw}' was refused`);
  hides(password, message, 'an error');
});

test('the path of a directory is shown, whatever is in it; a login before it is not', () => {
  const password = createPassword();
  const { message } = new SnowFlakeError(
    'ERR_SNOWFLAKE_STORE',
    `snowdrift reset file:///srv/app@2/ids?1, and file://app:${password.parts[0]}@db/x`,
  );
  assert.equal(message, 'snowdrift reset file:///srv/app@2/ids?1, and file://***@db/x');
});

test('a cause that shows no password stays as it is; one that does is copied, however deep it is', () => {
  const password = createPassword();
  learn(new URL(`redis://app:${password.encoded}@db`));
  const causeOf = (cause) =>
    new SnowFlakeError('ERR_SNOWFLAKE_STORE', 'it failed', { cause }).cause;
  const harmless = Object.assign(new Error('no route'), { code: 'EHOSTUNREACH', more: [{ a: 1 }] });
  assert.equal(causeOf(harmless), harmless);
  const secret = { one: new Map([['two', new Set([{ three: [`x${password.raw}x`] }])]]) };
  const cyclic = Object.assign(new TypeError('refused'), { code: 'E1', secret });
  cyclic.self = cyclic;
  const wrapped = new AggregateError([cyclic], 'all failed', { cause: cyclic });
  for (const cause of [cyclic, wrapped, new Error(password.raw), `AUTH ${password.raw}`]) {
    hides(password, everythingOf({ cause: causeOf(cause) }), inspect(cause));
  }
  assert.equal(causeOf(cyclic).code, 'E1');
  assert.equal(causeOf(cyclic).name, 'TypeError');
});

test('a megabyte of a server is searched in a moment', { skip: storm }, () => {
  for (const text of ['a://', 'a://?', '@a://', 'a@', 'file://', 'a'].map((each) =>
    each.repeat(2e5),
  )) {
    // The best of some rounds, since a busy machine makes some longer.
    let least = Infinity;
    for (let rounds = 0; rounds < 5 && least >= 2000; rounds++) {
      const start = performance.now();
      redactForeign(text);
      redactForeign(`${text}@`);
      least = Math.min(least, performance.now() - start);
    }
    assert.ok(least < 2000, text.slice(0, 20));
  }
});
