'use strict';
// `snowdrift serve`: who gets IDs, and what requests of others do.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { mkdtempSync, writeFileSync } = require('node:fs');
const http = require('node:http');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { before, describe, test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { SnowFlakeError } = require('../../js/messages/errors.js');
const { createDirectory, removeDirectory } = require('../support/own-directory.js');
const { storm } = require('../support/amount.js');
const { endOf, firstLine, run, start } = require('../support/cli.js');
const { Machine, missing } = require('../support/machine.js');
const { checkResponse, checkValue } = require('../support/schema.js');
const { TOKEN, ask, raw, refused, serving } = require('../support/serving.js');
const { SnowFlake, countDuplicates, layouts, runScript, until } = require('../support/support.js');
const { limitWait } = require('../support/limit-wait.js');

const NODE = ['--datacenter-id', '3', '--worker-id', '7'];

describe('serve', () => {
  let port;
  let flake;
  let log;
  before(async () => {
    ({ port, flake, log } = await serving());
  });

  test('POST draws IDs', async () => {
    const { status, headers, body } = await ask(port, 'POST', '/id');
    assert.deepEqual([status, typeof body.id], [200, 'string']);
    assert.equal(headers['cache-control'], 'no-store');
    const many = await Promise.all(
      Array.from({ length: 50 }, () => ask(port, 'POST', '/ids?n=200')),
    );
    const ids = [body.id, ...many.flatMap(({ body: { ids: some } }) => some)];
    assert.deepEqual([ids.length, countDuplicates(ids)], [10_001, 0]);
    const { body: parsed } = await ask(port, 'GET', `/parse/${body.id}`);
    assert.deepEqual([parsed.id, parsed.workerId], [body.id, flake.workerId]);
  });

  test('nothing but POST draws an ID: no probe, no prefetch, no cache', async () => {
    const { issued } = flake.stats();
    for (const path of ['/id', '/ids?n=5', '/ids']) {
      for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH']) {
        const answer = await ask(port, method, path);
        assert.deepEqual([answer.status, answer.headers.allow], [405, 'POST'], `${method} ${path}`);
      }
    }
    for (const path of [
      '/healthz',
      '/node',
      '/metrics',
      '/openapi.json',
      '/parse/900833463518117888',
    ]) {
      for (const method of ['GET', 'HEAD']) {
        const { status, text } = await ask(port, method, path);
        assert.deepEqual([status, text === ''], [200, method === 'HEAD'], `${method} ${path}`);
      }
      const { status, headers } = await ask(port, 'POST', path);
      assert.deepEqual([status, headers.allow], [405, 'GET, HEAD']);
    }
    assert.equal(flake.stats().issued, issued);
  });

  test('a foreign Host, as of a name bound anew, and any Origin are refused, and draw nothing', async () => {
    const { issued } = flake.stats();
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      '10.0.0.1',
    ]) {
      refused(await ask(port, 'POST', '/id', { headers: { host } }), 421, /Host must be/);
    }
    for (const origin of ['https://evil.example', 'null', `http://127.0.0.1:${port}`]) {
      refused(await ask(port, 'POST', '/id', { headers: { origin } }), 403, /Origin/);
    }
    assert.equal(flake.stats().issued, issued);
    for (const host of ['localhost', `LOCALHOST:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      assert.equal((await ask(port, 'POST', '/id', { headers: { host } })).status, 200, host);
    }
  });

  test('wrong requests get the right status and a reason, and never 500', async () => {
    const most = 4096;
    for (const [method, path, status, detail] of [
      ['POST', '/ids', 400, /n must be a whole number from 1 to 4096; it is missing/],
      ['POST', '/ids?n=', 400, /it is ''/],
      ['POST', '/ids?n=0', 400, /it is '0'/],
      ['POST', `/ids?n=${most + 1}`, 400, /it is '4097'/],
      ['POST', '/ids?n=1e3', 400, /it is '1e3'/],
      ['GET', '/parse/abc', 400, /must be a bigint or a string of decimal digits/],
      ['GET', '/parse/', 400, /it is ''/],
      ['GET', '/parse', 404, /there are/],
      ['GET', '/nothing', 404, /there are POST \/id/],
      ['GET', '/constructor', 404, /there are/],
      ['GET', '/__proto__', 404, /there are/],
      ['GET', '//', 404, /there are/],
      ['GET', '///healthz', 404, /there are/],
      ['GET', '//[', 404, /there are/],
      ['GET', '/%', 404, /there are/],
      ['GET', 'http://evil.example/id', 400, /target must be a path/],
      ['OPTIONS', '*', 400, /target must be a path/],
    ]) {
      refused(await ask(port, method, path), status, detail);
    }
    assert.deepEqual(log, []);
    assert.equal((await ask(port, 'POST', `/ids?n=${most}`)).body.ids.length, most);
  });

  test('metrics have the text format of Prometheus', async () => {
    const { text, type } = await ask(port, 'GET', '/metrics');
    assert.match(type, /^text\/plain; version=0\.0\.4/);
    assert.match(
      text,
      /# TYPE snowdrift_ids_issued_total counter\nsnowdrift_ids_issued_total\{.*\} \d+\n/,
    );
    const isMetric = (line) => line === '' || /^(# |\w+\{.*\} [\d.e+]+$)/.test(line);
    assert.ok(text.split('\n').every(isMetric), text);
  });

  test('the OpenAPI description is true: each response is as it says', async () => {
    const { body: api } = await ask(port, 'GET', '/openapi.json');
    assert.match(api.openapi, /^3\.1\./);
    const [id, ids, health] = ['/id', '/ids', '/healthz'];
    const { body } = await ask(port, 'POST', '/id');
    for (const [path, method, target] of [
      [id, 'POST', '/id'],
      [ids, 'POST', '/ids?n=3'],
      [ids, 'POST', '/ids?n=x'],
      ['/parse/{id}', 'GET', `/parse/${body.id}`],
      ['/parse/{id}', 'GET', '/parse/x'],
      ['/node', 'GET', '/node'],
      [health, 'GET', '/healthz'],
      ['/metrics', 'GET', '/metrics'],
    ]) {
      checkResponse(api, path, method, await ask(port, method, target));
      const foreign = await ask(port, method, target, { headers: { origin: 'null' } });
      assert.equal(foreign.status, 403);
      checkResponse(api, path, method, foreign);
    }
    assert.equal(api.paths['/ids'].post.parameters[0].schema.maximum, 4096);
    assert.throws(() =>
      checkValue(
        { id: 5 },
        api.paths['/id'].post.responses[200].content['application/json'].schema,
        api,
      ),
    );
    for (const [method, path] of [
      ['GET', '/id'],
      ['GET', '/nothing'],
    ]) {
      checkValue((await ask(port, method, path)).body, api.components.schemas.Problem, api);
    }
    const digits = new RegExp(api.components.schemas.Id.pattern);
    const passing = ['0', '7', '9223372036854775807', '', '007', '00', 'x'].filter((one) =>
      digits.test(one),
    );
    assert.deepEqual(passing, ['0', '7', '9223372036854775807']);
    // Each path of the description is served, and no other.
    const served = [id, ids, '/parse/{id}', '/node', health, '/metrics', '/openapi.json'];
    assert.deepEqual(Object.keys(api.paths), served.slice(0, -1));
  });
});

test('a batch may be as large as a tick, wherever in the tick it begins', async () => {
  const layout = { ...layouts.uid, epoch: Date.UTC(2026, 0, 1) };
  const flake = new SnowFlake({ layout, workerId: 4711, scope: 'process' });
  const { port } = await serving({ flake });
  const most = 2 ** layout.sequenceBits;
  refused(await ask(port, 'POST', `/ids?n=${most + 1}`), 400, /from 1 to 8192/);
  flake.nextIds(5000);
  const { status, body, text } = await ask(port, 'POST', `/ids?n=${most}`);
  assert.equal(status, 200, text);
  assert.deepEqual([body.ids.length, countDuplicates(body.ids)], [most, 0]);
  await flake.close();
});

describe('an error', () => {
  const reason = "SNOWFLAKE: PostgreSQL at db-7.internal:5432 refused the login of 'app'";
  /** An instance that refuses each draw. */
  const failing = (error) => ({
    layout: layouts.node,
    lease: null,
    isClosed: false,
    nextIdAsync: async () => {
      throw error();
    },
  });

  test('says nothing of the host or its store outside; the log has it, once', async () => {
    const retryAfterMs = 599_500;
    const error = () => new SnowFlakeError('ERR_SNOWFLAKE_STORE', reason, { retryAfterMs });
    const { port, log } = await serving({ flake: failing(error) });
    const start = performance.now();
    for (let n = 0; n < 3; n++) {
      const answer = await ask(port, 'POST', '/id');
      const problem = refused(answer, 503);
      assert.deepEqual([problem.code, problem.retryAfterMs], ['ERR_SNOWFLAKE_STORE', retryAfterMs]);
      assert.equal(answer.headers['retry-after'], '600');
      assert.doesNotMatch(answer.text, /internal|login|app'|stack/);
    }
    // A probe reports what a draw has found, and draws nothing.
    refused(await ask(port, 'GET', '/healthz'), 503);
    assert.deepEqual([...new Set(log)], [`ERR_SNOWFLAKE_STORE: ${reason}`]);
    const seconds = (performance.now() - start) / 1000;
    assert.ok(log.length <= 1 + seconds / 10, `${log.length} in ${seconds} s`);
    const { body: api } = await ask(port, 'GET', '/openapi.json');
    checkResponse(api, '/id', 'POST', await ask(port, 'POST', '/id'));
  });

  test('that nobody expected is 500, without its stack', async () => {
    const { port, log } = await serving({ flake: failing(() => new TypeError(reason)) });
    const answer = await ask(port, 'POST', '/id');
    refused(answer, 500);
    assert.doesNotMatch(answer.text, /internal:|db-7|at /);
    assert.match(log.join(), /TypeError: .*db-7.*\n +at /);
  });

  test('healthz reports a lease that is lost', async () => {
    const flake = { ...failing(), lease: { state: 'lost' } };
    const { port } = await serving({ flake });
    refused(await ask(port, 'GET', '/healthz'), 503);
    flake.lease.state = 'failing';
    assert.equal((await ask(port, 'GET', '/healthz')).status, 200, 'it still draws');
  });

  test('healthz reports a slot whose floor is ahead', async () => {
    const flake = { ...failing(), lease: { state: 'held', floor: Date.now() + 600_000 } };
    const { port } = await serving({ flake });
    refused(await ask(port, 'GET', '/healthz'), 503);
    flake.lease.floor = Date.now() - 1;
    assert.equal((await ask(port, 'GET', '/healthz')).status, 200);
    flake.lease.floor = null;
    assert.equal((await ask(port, 'GET', '/healthz')).status, 200);
  });
});

describe('a token', () => {
  test('is required with each request but the probe', async () => {
    const { port, flake } = await serving({ token: TOKEN });
    const { issued } = flake.stats();
    const sent = [
      undefined,
      '',
      TOKEN,
      'Bearer',
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(0, -1)}`,
      `Basic ${TOKEN}`,
    ];
    for (const authorization of sent) {
      const headers = authorization === undefined ? {} : { authorization };
      for (const [method, path] of [
        ['POST', '/id'],
        ['POST', '/ids?n=2'],
        ['GET', '/metrics'],
        ['GET', '/openapi.json'],
        ['GET', '/nothing'],
        ['GET', '/healthz?x'],
        ['GET', '/parse/1'],
      ]) {
        const answer = await ask(port, method, path, { headers });
        refused(answer, 401, /Authorization: Bearer/);
        assert.equal(answer.headers['www-authenticate'], 'Bearer');
      }
    }
    assert.equal(flake.stats().issued, issued);
    assert.equal((await ask(port, 'GET', '/healthz')).status, 200);
    for (const scheme of ['Bearer', 'bearer']) {
      const headers = { authorization: `${scheme} ${TOKEN}`, host: 'ids.example' };
      assert.equal((await ask(port, 'POST', '/id', { headers })).status, 200);
      const { body: api } = await ask(port, 'GET', '/openapi.json', { headers });
      assert.deepEqual(api.components.securitySchemes.token, { type: 'http', scheme: 'bearer' });
      assert.deepEqual(api.security, [{ token: [] }]);
      const origin = { ...headers, origin: 'https://ids.example' };
      refused(await ask(port, 'POST', '/id', { headers: origin }), 403);
    }
  });

  const off = ['serve', '--port', '0', '--host', '0.0.0.0', ...NODE];

  test('is required off the loopback', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'snowdrift-token-'));
    try {
      const { code, stderr } = await run(off);
      assert.deepEqual(
        [code, /needs a token: set SNOWDRIFT_TOKEN/.test(stderr)],
        [2, true],
        stderr,
      );
      for (const [args, env, said] of [
        [off, { SNOWDRIFT_TOKEN: 'short-Zq' }, /must hold 16 to 512 visible/],
        [off, { SNOWDRIFT_TOKEN: '' }, /SNOWDRIFT_TOKEN is empty/],
        [off, { SNOWDRIFT_TOKEN: `${TOKEN} ${TOKEN}` }, /must hold/],
        [[...off, '--token-file', join(folder, 'absent')], {}, /cannot read .*absent.* \(ENOENT\)/],
        [
          ['serve', '--host', 'absent.invalid', ...NODE],
          {},
          /--host 'absent.invalid' has no address/,
        ],
      ]) {
        const refusal = await run(args, { env });
        assert.deepEqual([refusal.code, refusal.stdout], [2, ''], refusal.stderr);
        assert.match(refusal.stderr, said);
        assert.doesNotMatch(refusal.stderr, /Zq/);
      }
    } finally {
      removeDirectory(folder);
    }
  });

  test('is refused under a misspelt name, which a process looks for once', async () => {
    const env = { SNOWDRIFT_TOKENS: TOKEN };
    const { code, stderr } = await endOf(start(['serve', '--port', '0', ...NODE], { env }));
    assert.equal(code, 2);
    assert.match(stderr, /SNOWDRIFT_TOKENS is not read: rename it/);
    assert.doesNotMatch(stderr, /Zq/);
  });

  test('is that of the environment or of a file', { skip: storm }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'snowdrift-token-'));
    try {
      const file = join(folder, 'token');
      writeFileSync(file, `${TOKEN}\n`);
      for (const [args, env] of [
        [off, { SNOWDRIFT_TOKEN: TOKEN }],
        [[...off, '--token-file', file], {}],
      ]) {
        const child = start([...args, '--json'], { env });
        const line = await firstLine(child);
        const { port } = new URL(JSON.parse(line).url);
        assert.doesNotMatch(line, /Zq/);
        refused(await ask(port, 'POST', '/id'), 401);
        const headers = { authorization: `Bearer ${TOKEN}` };
        assert.equal((await ask(port, 'POST', '/id', { headers })).status, 200);
        child.kill('SIGKILL');
      }
    } finally {
      removeDirectory(folder);
    }
  });
});

describe('slow, half-sent and large requests end', () => {
  const SHORT = { headers: 200, request: 400, idle: 600, checks: 50 };

  const head = 'POST /id HTTP/1.1\r\nHost: localhost\r\n';

  test('without an ID', async () => {
    const { port, flake } = await serving({ limits: SHORT });
    const { issued } = flake.stats();
    const halves = [
      ...['', 'POST /id HTTP', head, `${head}Content-Length: 100\r\n\r\nhalf`],
      `${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhal`,
    ];
    const replies = await Promise.all(halves.map((half) => raw(port, half)));
    for (const [n, reply] of replies.entries()) assert.match(reply, /^HTTP\/1\.1 408 /, halves[n]);
    assert.equal(flake.stats().issued, issued);
  });

  test('without an ID, whatever the time', async () => {
    const { port, flake } = await serving();
    const { issued } = flake.stats();
    assert.match(await raw(port, `${head}X: ${'x'.repeat(20_000)}\r\n\r\n`), /^HTTP\/1\.1 431 /);
    const large = `${head}Content-Length: 5000\r\n\r\n${'x'.repeat(5000)}`;
    assert.match(await raw(port, large), /^HTTP\/1\.1 413 .*send no body/s);
    assert.match(await raw(port, 'nonsense\r\n\r\n'), /^HTTP\/1\.1 400 /);
    assert.match(await raw(port, 'POST /id HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 421 /);
    assert.equal(flake.stats().issued, issued);
    assert.equal((await ask(port, 'POST', '/id', { body: '{}' })).status, 200);
  });

  test('requests that a client sends ahead end its connection, and are not served', async () => {
    const { port, flake } = await serving();
    const { issued } = flake.stats();
    const all = 'POST /ids?n=100 HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(100);
    await raw(port, all);
    const drawn = flake.stats().issued - issued;
    assert.ok(drawn <= 100n, `${drawn} IDs`);
  });

  test('there is a limit of IDs under way, and those of a client that has gone are not drawn', async () => {
    let tries = 0;
    const exhausted = {
      ...{ layout: layouts.node, lease: null, isClosed: false },
      nextIdStrings() {
        tries += 1;
        throw new SnowFlakeError('ERR_SNOWFLAKE_EXHAUSTED', 'wait', { retryAfterMs: 10 });
      },
    };
    const { port, server } = await serving({ flake: exhausted });
    let requests = 0;
    server.on('request', () => requests++);
    const open = Array.from({ length: 122 }, () => {
      const request = { host: '127.0.0.1', port, method: 'POST', path: '/ids?n=4096' };
      return http.request({ ...request, agent: false }).on('error', () => {});
    });
    for (const request of open) request.end();
    await until(() => requests === 122 && tries >= 122);
    const answer = await ask(port, 'POST', '/ids?n=4096');
    refused(answer, 503, /too many IDs are requested at once/);
    assert.equal(answer.headers['retry-after'], '1');
    for (const request of open) request.destroy();
    let before;
    await until(async () => {
      before = tries;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return tries === before;
    });
    const again = http.request({ host: '127.0.0.1', port, method: 'POST', path: '/ids?n=4096' });
    again.on('error', () => {}).end();
    await until(() => tries > before);
    again.destroy();
  });
});

test('SIGTERM lets requests end, frees the slot, and ends it with 0', { skip: storm }, async () => {
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-serve-'));
  const lease = ['--lease', `file://${state}`, '--datacenter-id', '1'];
  try {
    const own = start(['serve', '--port', '0', '--json', ...lease]);
    const line = await firstLine(own);
    const { url } = JSON.parse(line);
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/, 'the loopback only');
    // A connection that is kept open does not hold it up.
    const agent = new http.Agent({ keepAlive: true });
    const request = http.request(`${url}/id`, { agent, method: 'POST' }).end();
    await limitWait(once(request, 'response'), 'a response');
    const ended = endOf(own);
    own.kill('SIGTERM');
    assert.equal((await ended).code, 0);
    agent.destroy();
    const next = await run(['next', ...lease]);
    assert.equal(SnowFlake.parse(next.stdout.trim(), 'node').workerId, 0);
  } finally {
    removeDirectory(state);
  }
});

test('once it stops, its replies end their connections: a busy client does not hold it up', async () => {
  const { server, port } = await serving();
  const agent = new http.Agent({ keepAlive: true });
  const connectionAfter = async (request) => {
    const [response] = await limitWait(once(request.end(), 'response'), 'a response');
    await once(response.resume(), 'end');
    assert.equal(response.statusCode, 200);
    return response.headers.connection;
  };
  const post = () => http.request({ agent, port, host: '127.0.0.1', method: 'POST', path: '/id' });
  assert.equal(await connectionAfter(post()), 'keep-alive');
  const last = post();
  last.flushHeaders();
  await limitWait(once(server, 'request'), 'a request');
  const closed = once(server, 'close');
  server.close();
  assert.equal(await connectionAfter(last), 'close');
  await limitWait(closed, 'the end of the server');
});

test('SIGTERM ends it as soon as it has printed its URL', async () => {
  const script = `
    const { run } = require('../../js/cli/serve.js');
    setTimeout(() => process.exit(3), 60_000).unref();
    run({ port: '0' }, [], { print: () => process.emit('SIGTERM') }).then(() => console.log('ended'));`;
  const { stdout, stderr } = await runScript(script, { env: { datacenterId: '3', workerId: '7' } });
  assert.equal(stdout, 'ended\n', stderr);
});

test('--ttl, --wait-for-slot and --clock-back are checked as the options are', async (t) => {
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-serve-'));
  t.after(() => removeDirectory(state));
  const recorded = ['--state', state];
  for (const [args, said] of [
    [['--ttl', '999', ...recorded], /: ttl must be a whole number from 1000 to 3600000; it is 999/],
    [['--ttl', '10s', ...recorded], /--ttl must be a whole number; it is '10s'/],
    [['--ttl', '5000'], /ttl needs state or lease/],
    [['--ttl', '', ...recorded], /--ttl is empty/],
    [
      ['--wait-for-slot', '3600001', ...recorded],
      /waitForSlot must be a whole number from 0 to 3600000; it is 3600001/,
    ],
    [['--wait-for-slot=-1', ...recorded], /--wait-for-slot must be a whole number; it is '-1'/],
    [['--wait-for-slot', '5000'], /waitForSlot needs state or lease/],
    [['--clock-back', 'jump'], /clockBack must be one of 'counter', 'wait', 'throw'; it is 'jump'/],
    [['--clock-back', 'counter', '--layout', 'twitter'], /needs a layout with clockBackBits/],
  ]) {
    const { code, stderr } = await run(['serve', '--port', '0', ...NODE, ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, said);
  }
});

/** Starts `snowdrift serve`; answers its port and node. */
async function served(args, options) {
  const child = start(['serve', '--port', '0', '--json', ...args], options);
  const { url, ...node } = JSON.parse(await firstLine(child));
  return { child, port: Number(new URL(url).port), ...node };
}

test('--ttl sets the ceiling, and --wait-for-slot waits for a slot that is held', async (t) => {
  const state = mkdtempSync(join(tmpdir(), 'snowdrift-serve-'));
  t.after(() => removeDirectory(state));
  // One worker ID, which a holder has that shares it with nobody.
  const layout = { ...layouts.node, datacenterBits: 0, workerBits: 0 };
  const lease = { layout, scope: 'process' };
  const holder = await SnowFlake.lease(`file://${state}`, lease);
  const args = ['--lease', `file://${state}`, '--layout', '41/0/0/2/12'];
  const { code, stderr } = await run(['serve', '--port', '0', ...args]);
  assert.deepEqual([code, /ERR_SNOWFLAKE_(NO_SLOT|IN_USE)/.test(stderr)], [1, true], stderr);
  const waiting = served([...args, '--ttl', '3600000', '--wait-for-slot', '3600000']);
  const first = await Promise.race([
    waiting,
    new Promise((resolve) => setTimeout(resolve, 300, 'waits')),
  ]);
  assert.equal(first, 'waits');
  await holder.close();
  const before = Date.now();
  const { port } = await waiting;
  const { text } = await ask(port, 'GET', '/metrics');
  const [, ceiling] = /^snowdrift_lease_ceiling_seconds\S* ([\d.e+]+)$/m.exec(text) ?? [];
  // A directory's usual ceiling is 10 s ahead.
  assert.ok(Number(ceiling) * 1000 > before + 3_000_000, text);
});

test('--clock-back throw refuses after a clock rollback', { skip: missing() }, async (t) => {
  const machine = new Machine();
  t.after(() => machine.remove());
  const back = async (...args) => {
    machine.clock = 0;
    const { child, port } = await served([...NODE, ...args], { env: machine.env });
    assert.equal((await ask(port, 'POST', '/id')).status, 200);
    machine.clock = -3_600_000;
    const answer = await ask(port, 'POST', '/id');
    child.kill('SIGKILL');
    return answer;
  };
  const body = refused(await back('--clock-back', 'throw'), 503);
  assert.equal(body.code, 'ERR_SNOWFLAKE_CLOCK_BACK');
  assert.equal((await back('--clock-back', 'counter')).status, 200);
});

test('a port in use is an error that names it, and leaves no slot held', async () => {
  const { port } = await serving();
  const url = pathToFileURL(createDirectory()).href;
  const lease = ['--datacenter-id', '1', '--lease', url];
  const { code, stderr } = await run(['serve', '--port', String(port), ...lease]);
  assert.deepEqual([code, /cannot listen: .*EADDRINUSE/.test(stderr)], [2, true], stderr);
  const { slots } = JSON.parse((await run(['slots', url, '--json'])).stdout);
  assert.deepEqual(
    slots.map(({ state }) => state),
    ['free'],
  );
});
