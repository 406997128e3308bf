'use strict';
// Runs the tests of snowdrift/nestjs with another version of NestJS, also by HTTP.

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { missingClients, replaceClients } = require('./installed.js');

const ID = '900710334548459521';
const KEY = require('node:crypto').randomBytes(32).toString('base64');

/** @param age 'oldest' or 'newest' */
function testWith(age) {
  const folder = `frameworks-${age}`;
  const skip = missingClients(folder);
  if (skip) {
    test(`the ${age} NestJS`, { skip }, () => {});
    return;
  }
  replaceClients(folder);
  require('../app/nestjs.test.js');
  require('../app/nestjs-health.test.js');
  require('../app/nestjs-pipes.test.js');
  test('by HTTP, the pipes answer with an ID or with their exception', answersByHttp);
}

async function answersByHttp() {
  const { Controller, Get, Module, Param, Query } = require('@nestjs/common');
  const { NestFactory } = require('@nestjs/core');
  const { ParsePublicIdPipe, ParseSnowFlakePipe } = require('../../js/nestjs.js');
  const { publicIds } = require('../../js/public.js');
  const orders = publicIds({ kind: 'order', key: KEY });

  class Ids {
    user = (id) => ({ id });
    page = (after) => ({ after: String(after) });
    order = (id) => ({ id });
  }
  const route = (name, path, parameter) => {
    const { prototype } = Ids;
    prototype[name] = (...args) => new Ids()[name](...args);
    Get(path)(prototype, name, Object.getOwnPropertyDescriptor(prototype, name));
    parameter(prototype, name, 0);
  };
  Controller()(Ids);
  route('user', 'users/:id', Param('id', ParseSnowFlakePipe));
  const after = new ParseSnowFlakePipe({ optional: true, as: 'bigint' });
  route('page', 'page', Query('after', after));
  route('order', 'orders/:id', Param('id', ParsePublicIdPipe.inject('ORDER_IDS')));
  class App {}
  const provider = { provide: 'ORDER_IDS', useFactory: async () => orders };
  Module({ controllers: [Ids], providers: [provider] })(App);

  const app = await NestFactory.create(App, { logger: false });
  try {
    await app.listen(0, '127.0.0.1');
    const url = `http://127.0.0.1:${app.getHttpServer().address().port}`;
    const answer = async (path) => await (await fetch(url + path)).json();
    assert.deepEqual(await answer(`/users/${ID}`), { id: ID });
    const message = 'id must be an ID: decimal digits without leading zeros';
    assert.deepEqual(await answer('/users/007'), {
      message,
      error: 'Bad Request',
      statusCode: 400,
    });
    assert.deepEqual(await answer(`/page?after=${ID}`), { after: ID });
    assert.deepEqual(await answer('/page'), { after: 'undefined' });
    for (const query of ['after=', 'after=x', 'after=1&after=2', 'after[]=1', 'after[x]=1']) {
      const { statusCode } = await answer(`/page?${query}`);
      // Express 5 gives names with brackets as they are.
      if (!/\[/.test(query) || statusCode) assert.equal(statusCode, 400, query);
    }
    assert.deepEqual(await answer(`/orders/${orders.encode(ID)}`), { id: ID });
    for (const text of [ID, 'order_x', orders.encode(ID).slice(0, -1)]) {
      assert.deepEqual(await answer(`/orders/${text}`), { message: 'Not Found', statusCode: 404 });
    }
  } finally {
    await app.close();
  }
}

module.exports = { testWith };
