'use strict';
// `snowdrift serve`: IDs by HTTP, as Twitter's Snowflake was a service of the network.

const http = require('node:http');

const { SnowFlakeError } = require('../errors.js');
const { ASYNC_DISPOSE } = require('../instance.js');
const { NODE, NODE_HELP, open, wholeNumber } = require('./flags.js');

const MOST = 10_000;
const PORT = 8080;
const HOST = '127.0.0.1';

/** How long requests that are being served are waited for when it stops, ms. */
const STOP_MS = 5000;

const help = `Usage: snowdrift serve [--port N] [--host ADDRESS] [options]

Gives IDs by HTTP, to services in other languages, as JSON with IDs as strings:

  GET /id               {"id":"900833463518117888"}
  GET /ids?n=COUNT      {"ids":[...]}, 1 to ${MOST}
  GET /parse/ID         the ID's fields
  GET /healthz          200 while there are IDs, else 503 and why
  GET /metrics          for Prometheus

It has no authentication: it listens on the loopback unless told otherwise. SIGTERM and SIGINT let the
requests that are being served end, give the slot up, and stop it.

  --port N              0 to 65535, default ${PORT}; 0 for any that is free
  --host ADDRESS        default ${HOST}
  --json                says where it listens as JSON
${NODE_HELP}`;

const options = { ...NODE, port: { type: 'string' }, host: { type: 'string' } };

/** What is wrong with a request. */
class HttpError extends Error {
  constructor(status, message, headers = {}) {
    super(message);
    Object.assign(this, { status, headers });
  }
}

const ROUTES = {
  '/id': async (flake) => ({ id: String(await flake.nextIdAsync()) }),
  '/ids': (flake, { searchParams }) => ({ ids: flake.nextIdStrings(countOf(searchParams)) }),
  '/healthz': async (flake) => {
    await flake.nextIdAsync();
    return { status: 'ok' };
  },
};

function countOf(searchParams) {
  const text = searchParams.get('n') ?? '';
  const count = Number(text);
  if (!/^[0-9]{1,5}$/.test(text) || count < 1 || count > MOST) {
    throw new HttpError(
      400,
      `n must be a whole number from 1 to ${MOST}; it is '${text.slice(0, 20)}'`,
    );
  }
  return count;
}

function parseOf(flake, pathname) {
  try {
    return flake.parse(pathname.slice('/parse/'.length));
  } catch (failure) {
    throw new HttpError(400, failure.message);
  }
}

/** In the format of Prometheus. */
function metricsOf(flake) {
  const { issued, waits, waitedMs, clockStepsBack, endOfTime } = flake.stats();
  const { lease } = flake;
  const metrics = [
    ['ids_issued_total', 'counter', 'IDs handed out.', issued],
    ['waits_total', 'counter', 'Waits for the clock or the store.', waits],
    ['waited_seconds_total', 'counter', 'How long they took.', waitedMs / 1000],
    ['clock_steps_back_total', 'counter', 'Steps of the clock back.', clockStepsBack],
    ['end_of_time_seconds', 'gauge', 'When the layout’s time ends, Unix time.', endOfTime / 1000],
  ];
  if (lease !== null) {
    const isHeld = Number(lease.state === 'held');
    metrics.push(
      ['lease_held', 'gauge', 'Whether the slot is held and was renewed in time.', isHeld],
      ['lease_ceiling_seconds', 'gauge', 'No ID after this Unix time.', lease.ceiling / 1000],
      ['lease_renewals_total', 'counter', 'How often the ceiling was raised.', lease.renewals],
    );
  }
  const labels = `{datacenter="${flake.datacenterId}",worker="${flake.workerId}"}`;
  return metrics
    .filter(([, , , value]) => Number.isFinite(value))
    .map(
      ([name, type, what, value]) =>
        `# HELP snowdrift_${name} ${what}\n# TYPE snowdrift_${name} ${type}\nsnowdrift_${name}${labels} ${value}\n`,
    )
    .join('');
}

async function answer(flake, { method, url }) {
  const { pathname, searchParams } = new URL(url, 'http://localhost');
  const isParse = pathname.startsWith('/parse/');
  if (!isParse && pathname !== '/metrics' && !Object.hasOwn(ROUTES, pathname)) {
    throw new HttpError(404, 'there are /id, /ids?n=, /parse/ID, /healthz and /metrics');
  }
  if (method !== 'GET' && method !== 'HEAD') {
    throw new HttpError(405, 'only GET and HEAD', { allow: 'GET, HEAD' });
  }
  if (pathname === '/metrics') {
    return { type: 'text/plain; version=0.0.4; charset=utf-8', body: metricsOf(flake) };
  }
  const what = isParse ? parseOf(flake, pathname) : await ROUTES[pathname](flake, { searchParams });
  return { type: 'application/json', body: `${JSON.stringify(what)}\n` };
}

/** An error as what is sent. */
function refusal(failure) {
  const headers = { ...failure.headers };
  let status = failure.status ?? 500;
  let error = { message: failure.message };
  if (failure instanceof SnowFlakeError) {
    status = 503;
    error = { code: failure.code, ...error };
    if (failure.retryAfterMs !== undefined) {
      headers['retry-after'] = String(Math.ceil(failure.retryAfterMs / 1000));
    }
  } else if (status === 500) {
    error = { message: 'internal error' };
    process.stderr.write(`snowdrift: ${failure.stack}\n`);
  }
  return { status, headers, type: 'application/json', body: `${JSON.stringify({ error })}\n` };
}

function serverOf(flake) {
  return http.createServer({ requestTimeout: 10_000 }, async (request, response) => {
    const { status = 200, type, headers = {}, body } = await answer(flake, request).catch(refusal);
    response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      // Each ID is for whoever asked for it.
      'cache-control': 'no-store',
      ...headers,
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  });
}

async function run(flags, positionals, { print, usage }) {
  if (positionals.length > 0) throw usage(`serve takes no '${positionals[0]}'`);
  const port = wholeNumber('port', flags.port) ?? PORT;
  if (port > 65_535) throw usage(`--port must be 0 to 65535; it is ${port}`);
  const flake = await open(flags);
  const server = serverOf(flake);
  await new Promise((resolve, reject) => {
    server.once('error', reject).listen(port, flags.host ?? HOST, resolve);
  }).catch((failure) => {
    flake.close();
    throw usage(`cannot listen: ${failure.message}`);
  });
  const { address, family, port: bound } = server.address();
  const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
  const { datacenterId, workerId } = flake;
  if (flags.json) print(JSON.stringify({ url, datacenterId, workerId }));
  else print(`${url} gives IDs of datacenterId ${datacenterId}, workerId ${workerId}`);
  await new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, resolve);
  });
  server.close();
  server.closeIdleConnections?.();
  const late = setTimeout(() => server.closeAllConnections?.(), STOP_MS);
  await new Promise((resolve) => server.once('close', resolve));
  clearTimeout(late);
  await flake[ASYNC_DISPOSE]();
}

module.exports = { help, options, run };
