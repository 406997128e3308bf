'use strict';
// Services that answer anything but what AWS's and Google's do, to their clients themselves: each lease is refused in time, no process ends, and no
// key is shown.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const http = require('node:http');
const { after, before, describe, test } = require('node:test');
const { inspect } = require('node:util');

require('../support/own-directory.js');
const { missingClients } = require('../support/installed.js');
const { useAws, useClient } = require('../support/lease/servers.js');
const { SnowFlake } = require('../support/support.js');

const skip = missingClients('aws') ?? missingClients('gcs');
const CALL_TIMEOUT = 2000;
const SECRETS = { AWS_SECRET_ACCESS_KEY: 'geheim-EXAMPLE', AWS_SESSION_TOKEN: 'token//EXAMPLE+==' };

const json = { 'Content-Type': 'application/x-amz-json-1.0' };
const end = (status, headers, text) => (_, response) => {
  response.writeHead(status, headers).end(text);
};

/** Parts without an end, as fast as the client reads. */
function pour(response, start) {
  response.write(start);
  const more = () => {
    while (!response.destroyed && response.write('x'.repeat(65_536)));
  };
  response.on('drain', more);
  more();
}

/** By name: how the service answers. */
const ANSWERS = {
  'HTML, as a captive portal': end(200, { 'Content-Type': 'text/html' }, '<html>Sign in</html>'),
  'HTML and 503': end(503, {}, '<html>Unavailable</html>'),
  nothing: end(200, {}, ''),
  'a redirect': end(301, { Location: 'http://absent.invalid/' }, ''),
  'a text of JSON': end(200, json, '"text"'),
  'a list': end(200, json, '[[],{}]'),
  'other types': end(200, json, '{"Item":{"token":{"N":"7"},"text":[]}}'),
  'an item that is a text': end(200, json, '{"Item":"text"}'),
  'JSON without its end': end(200, json, '{"Item":{"token":'),
  'less than its length': (_, response) => {
    response.writeHead(200, { ...json, 'Content-Length': 1000 });
    response.write('{"Item"');
    setTimeout(() => response.destroy(), 50);
  },
  'a reply that does not end': (_, response) => {
    response.writeHead(200, { ...json, ETag: '"x"' });
    response.write('{"Item"');
  },
  'a reply without an end': (_, response) => {
    response.writeHead(200, { ...json, ETag: '"x"' });
    pour(response, '{"Item":"');
  },
  'an error without an end': (_, response) => {
    response.writeHead(400, json);
    pour(response, '{"message":"');
  },
  'the request, as an error': async (request, response) => {
    const message = JSON.stringify(request.headers);
    const type = 'com.amazon.coral.service#InvalidSignatureException';
    response.writeHead(400, json).end(JSON.stringify({ __type: type, message }));
  },
  'a reset': (request) => request.socket.resetAndDestroy(),
  silence: () => {},
};

const URLS = {
  DynamoDB: 'dynamodb://eu-central-1/ids?endpoint=',
  S3: 's3://ids/app?region=eu-central-1&endpoint=',
  'Google Cloud Storage': 'gs://ids/app?endpoint=',
};

describe('a service that is none', { skip }, () => {
  let server;
  let answer;
  const before_ = { ...process.env };

  before(async () => {
    useAws();
    useClient('gcs');
    Object.assign(process.env, SECRETS);
    server = http.createServer((request, response) => {
      request.resume();
      response.on('error', () => {});
      answer(request, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  after(() => {
    server.closeAllConnections();
    server.close();
    for (const name of Object.keys(SECRETS)) delete process.env[name];
    Object.assign(process.env, before_);
  });

  for (const [product, url] of Object.entries(URLS)) {
    for (const [name, given] of Object.entries(ANSWERS)) {
      test(`${product}: ${name}`, async (t) => {
        answer = given;
        const start = performance.now();
        const endpoint = `http://127.0.0.1:${server.address().port}`;
        const lease = SnowFlake.lease(`${url}${endpoint}`, {
          ...{ datacenterId: 1, scope: 'process', callTimeout: CALL_TIMEOUT },
        });
        const error = await lease.then(
          () => undefined,
          (failure) => failure,
        );
        t.diagnostic(
          `${error?.message.slice(0, 160)} ${Math.round(performance.now() - start)} ms, ${Math.round(process.memoryUsage.rss() / 1e6)} MB`,
        );
        assert.match(String(error?.code), /^ERR_SNOWFLAKE_(STORE|CONFLICT|CONFIG)$/);
        assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /EXAMPLE/);
        server.closeAllConnections();
      });
    }
  }
});
