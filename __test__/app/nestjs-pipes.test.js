'use strict';
// The pipes of snowdrift/nestjs: which values pass, in which form, and what is thrown for others.

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { test } = require('node:test');

require('reflect-metadata');
const nest = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');

const { refuses, rejects } = require('../support/support.js');
const { ceilingId } = require('../../js/id.js');
const { publicIds } = require('../../js/public.js');
const { ParsePublicIdPipe, ParseSnowFlakePipe } = require('../../js/nestjs.js');

const { BadRequestException, GoneException, Module, NotFoundException } = nest;
const CONFIG = 'ERR_SNOWFLAKE_CONFIG';
const ID = '900710334548459521';
const OTHERS = [
  ...['', ' ', 'abc', '-5', '+5', '007', '1e3', '5.0', '9223372036854775808', '１', `${ID}\n`],
  ...['9'.repeat(1_000_000), ['1', '2'], { toString: () => '5' }, 5, true, undefined, null],
];

const param = (data) => ({ type: 'param', metatype: String, data });
const publicKey = () => randomBytes(32).toString('base64');
const orders = publicIds({ kind: 'order', key: publicKey() });

/** The answer that NestJS sends for what a pipe throws. */
function answerOf(Exception, call) {
  try {
    call();
  } catch (error) {
    assert.equal(error.constructor, Exception);
    return error.getResponse();
  }
  return assert.fail('passed');
}

test('an ID passes in the form that is asked for', () => {
  for (const [options, id] of [
    [undefined, ID],
    [{}, ID],
    [{ as: 'string' }, ID],
    [{ as: 'bigint' }, BigInt(ID)],
    [{ as: 'bigint', layout: 'node', since: new Date(0).setUTCFullYear(2020, 5) }, BigInt(ID)],
  ]) {
    assert.equal(new ParseSnowFlakePipe(options).transform(ID, param('id')), id);
  }
  assert.equal(
    new ParseSnowFlakePipe({ as: 'number', layout: 'safe' }).transform('57891234567890'),
    57891234567890,
  );
});

test('anything else is a BadRequestException, which names the parameter and repeats no value', () => {
  const pipe = new ParseSnowFlakePipe();
  const message = 'id must be an ID: decimal digits without leading zeros';
  for (const value of OTHERS) {
    const answer = answerOf(BadRequestException, () => pipe.transform(value, param('id')));
    assert.deepEqual(answer, { message, error: 'Bad Request', statusCode: 400 });
  }
  const { message: unnamed } = answerOf(BadRequestException, () => pipe.transform('x'));
  assert.match(unnamed, /^the value must be an ID/);
});

test('with a layout, IDs that it cannot have are refused, too', () => {
  const pipe = new ParseSnowFlakePipe({ layout: 'node', since: Date.UTC(2020, 5) });
  const DAY = 86_400_000;
  const pass = ceilingId(Date.now() + DAY / 2, 'node');
  assert.equal(pipe.transform(String(pass)), String(pass));
  for (const id of ['5', String(ceilingId(Date.now() + 2 * DAY, 'node')), String(2n ** 63n - 1n)]) {
    answerOf(BadRequestException, () => pipe.transform(id));
  }
});

test('a public ID passes as its ID, and anything else is what a row that does not exist is', () => {
  const text = orders.encode(ID);
  assert.equal(new ParsePublicIdPipe(orders).transform(text), ID);
  assert.equal(new ParsePublicIdPipe(orders, { as: 'bigint' }).transform(text), BigInt(ID));
  const pipe = new ParsePublicIdPipe(orders);
  const missing = new NotFoundException().getResponse();
  const other = publicIds({ kind: 'order', key: publicKey() });
  const customers = publicIds({ kind: 'customer', key: publicKey(), prefix: 'order_' });
  for (const value of [ID, text.slice(0, -1), other.encode(ID), customers.encode(ID), ...OTHERS]) {
    assert.deepEqual(
      answerOf(NotFoundException, () => pipe.transform(value)),
      missing,
    );
  }
});

test('optional, errorHttpStatusCode and exceptionFactory are as those of NestJS', () => {
  const made = [
    (options) => new ParseSnowFlakePipe(options),
    (options) => new ParsePublicIdPipe(orders, options),
  ];
  for (const make of made) {
    const optional = make({ optional: true });
    assert.equal(optional.transform(undefined), undefined);
    assert.equal(optional.transform(null), null);
    answerOf(make === made[0] ? BadRequestException : NotFoundException, () =>
      optional.transform(''),
    );
    answerOf(GoneException, () => make({ errorHttpStatusCode: 410 }).transform('x'));
    const own = new RangeError('own');
    const messages = [];
    const exceptionFactory = (message) => {
      messages.push(message);
      return own;
    };
    assert.throws(() => make({ exceptionFactory }).transform('x'), own);
    assert.equal(messages.length, 1);
    for (const options of [
      { optional: 1 },
      { errorHttpStatusCode: 200 },
      { errorHttpStatusCode: '404' },
      { exceptionFactory: 'x' },
      { as: 'uuid' },
      { assert: 'x' },
      'string',
    ]) {
      refuses(() => make(options), CONFIG);
    }
  }
});

test('a provider gives the key of public IDs', async () => {
  const token = Symbol('ids of orders');
  const Pipe = ParsePublicIdPipe.inject(token, { as: 'bigint' });
  class App {}
  const start = async (useFactory) => {
    Module({ providers: [Pipe, { provide: token, useFactory }] })(App);
    const options = { logger: false, abortOnError: false };
    return await NestFactory.createApplicationContext(App, options);
  };
  const app = await start(async () => orders);
  assert.equal(app.get(Pipe).transform(orders.encode(ID)), BigInt(ID));
  await app.close();
  const { message } = await rejects(
    start(() => undefined),
    CONFIG,
  );
  assert.match(message, /needs the result of publicIds\(\).*ParsePublicIdPipe\.inject\(token\)/);
});

test('what is no publicIds() is refused when the application starts, and no error shows a key', () => {
  const key = publicKey();
  for (const ids of [undefined, null, 'order', { kind: 'order', key }, key]) {
    const { message } = refuses(() => new ParsePublicIdPipe(ids), CONFIG);
    assert.ok(!message.includes(key));
  }
  for (const token of [undefined, null, '']) refuses(() => ParsePublicIdPipe.inject(token), CONFIG);
});
