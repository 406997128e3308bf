'use strict';
// The HTTP server of `snowdrift serve`: access checks, paths, and responses.
//
// A web page must not generate IDs. Browsers send an Origin with each POST, and such requests are refused. A page whose
// own host name was rebound to this address (DNS rebinding) sends another Host: without a token, only names of the
// loopback are accepted. Only POST generates IDs, so that no probe, prefetch or cache does.

/**
 * @import { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
 * @import { SnowFlake } from '../../index.js'
 * @import { Layout } from '../types.js'
 * @import { Connected, Bounds, Log } from './connections.js'
 * @typedef {import('../../index.js').SnowFlakeError} Refused
 *
 * A request whose sender may make it: the ID of its path, the parameters of its query, and where the response goes.
 * @typedef {{ id: string, query: URLSearchParams, response: ServerResponse }} Call
 * @typedef {(call: Call) => unknown} Handler
 *
 * @typedef {{ title?: string, status: number, detail: string, code?: string, retryAfterMs?: number }} Problem
 *
 * @typedef {object} ServerOptions
 * @property {string} [token] if clients need one
 * @property {(text: string) => void} complain logs a text
 * @property {Partial<typeof LIMITS>} [limits] replaces some of LIMITS
 * @property {Bounds} [bounds] of connections
 */

const { createHash, timingSafeEqual } = require('node:crypto');
const http = require('node:http');
const { inspect } = require('node:util');

const { SnowFlakeError } = require('../messages/errors.js');
const { redactForeign } = require('../messages/secrets.js');
const { healthOf } = require('../monitoring/health.js');
const { textOf } = require('../monitoring/list.js');
const { monotonic, pause, unixNow } = require('../runtime/time.js');
const { Connections } = require('./connections.js');
const { apiOf } = require('./openapi.js');
const { NONE } = require('../ids/properties.js');

const MAX_COUNT = 10_000;

/** Time limits, ms. They end slow and incomplete requests, and idle connections. */
const LIMITS = {
  headers: 5000,
  request: 10_000,
  idle: 10_000,
  /** The limit of a batch that waits for ticks. */
  draw: 3000,
  checks: 1000,
};
const MAX_BODY = 1024;
const MAX_HEADERS = 8192;
/** The most IDs generated or requested, but not read by their clients yet. */
const MAX_UNREAD = 500_000;

/** The shortest time between two log entries with one code, ms. */
const LOG_MS = 10_000;

/** The path of probes, which have no token. Whether IDs are available is no secret. */
const PROBE = '/healthz';

/** Names of the loopback in a Host header. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

class HttpError extends Error {
  /**
   * @param {number} status
   * @param {string} detail
   * @param {OutgoingHttpHeaders} [headers]
   */
  constructor(status, detail, headers = NONE) {
    super(detail);
    this.status = status;
    this.headers = headers;
  }
}

const unavailable = (/** @type {string} */ detail) =>
  new HttpError(503, detail, { 'retry-after': '1' });

/**
 * The most IDs of one request: at most those of a tick.
 * @param {Layout} layout
 */
function largestBatch({ sequenceBits }) {
  return Math.min(MAX_COUNT, 2 ** sequenceBits);
}

/**
 * @param {string | null} text
 * @param {number} most
 */
function readCount(text, most) {
  const count = Number(text);
  if (/^[0-9]{1,5}$/.test(text ?? '') && count >= 1 && count <= most) return count;
  const found = text === null ? 'it is missing' : `it is '${text.slice(0, 20)}'`;
  throw new HttpError(400, `n must be a whole number from 1 to ${most}; ${found}`);
}

const digest = (/** @type {string} */ text) => createHash('sha256').update(text).digest();

/**
 * Returns a function that checks an Authorization header, in a time that does not depend on the received token.
 * @param {string} token
 * @returns {(sent: string | undefined) => boolean}
 */
function createTokenCheck(token) {
  const wanted = digest(`Bearer ${token}`);
  return (sent) => timingSafeEqual(digest((sent ?? '').replace(/^bearer /i, 'Bearer ')), wanted);
}

class IdService {
  #flake;
  #mayPass;
  #log;
  #limits;
  #connections;
  #api;
  /**
   * The last refusal, and the monotonic time at which its cause may have passed.
   * @type {{ failure: unknown, until: number } | undefined}
   */
  #refusal;
  #unread = 0;

  /**
   * @param {SnowFlake} flake
   * @param {{ token?: string, log: Log, limits: typeof LIMITS, connections: Connected }} options
   */
  constructor(flake, { token, log, limits, connections }) {
    this.#flake = flake;
    this.#mayPass = token === undefined ? undefined : createTokenCheck(token);
    this.#log = log;
    this.#limits = limits;
    this.#connections = connections;
    this.#api = apiOf({ most: this.#most, hasToken: token !== undefined });
  }

  get #most() {
    return largestBatch(this.#flake.layout);
  }

  /**
   * The handlers, by path and method.
   * @type {Record<string, Record<string, Handler>>}
   */
  #routes = {
    '/id': { POST: async ({ response }) => ({ id: (await this.#draw(1, response))[0] }) },
    '/ids': {
      POST: async ({ query, response }) => {
        return { ids: await this.#draw(readCount(query.get('n'), this.#most), response) };
      },
    },
    '/node': { GET: () => this.#node() },
    '/parse': { GET: ({ id }) => this.#parse(id) },
    [PROBE]: { GET: () => this.#checkHealth() },
    '/metrics': { GET: () => textOf(this.#flake) },
    '/openapi.json': { GET: () => this.#api },
  };

  /**
   * @param {IncomingMessage} request
   * @param {ServerResponse} response
   */
  async respond(request, response) {
    const { method = '', headers, url = '' } = request;
    this.#checkSender(headers, url);
    if (url !== PROBE && !this.#connections.authorise(request.socket)) {
      throw unavailable('too many connections are open: use fewer, or try again');
    }
    const [path, search = ''] = url.split(/\?(.*)/s);
    const id = /^\/parse\/(.*)$/s.exec(path)?.[1];
    const name = id === undefined ? path : '/parse';
    if (!Object.hasOwn(this.#routes, name) || path === '/parse') {
      const known =
        'POST /id, POST /ids?n=, GET /parse/ID, /node, /healthz, /metrics and /openapi.json';
      throw new HttpError(404, `no such path: there are ${known}`);
    }
    const route = this.#routes[name];
    const call = Object.hasOwn(route, method) ? route[method] : method === 'HEAD' && route.GET;
    if (!call) {
      const allow = route.GET ? 'GET, HEAD' : 'POST';
      throw new HttpError(405, `use ${allow}`, { allow });
    }
    await readBody(request);
    return call({ id: id ?? '', query: new URLSearchParams(search), response });
  }

  /**
   * @param {IncomingHttpHeaders} headers
   * @param {string} url
   */
  #checkSender({ host = '', origin, authorization }, url) {
    if (!url.startsWith('/')) throw new HttpError(400, 'the target must be a path');
    if (origin !== undefined) {
      throw new HttpError(403, 'requests of web pages, with an Origin, are refused');
    }
    if (this.#mayPass === undefined) {
      if (LOOPBACK.test(host.replace(/:\d+$/, ''))) return;
      const detail = 'the Host must be localhost or an address of the loopback';
      throw new HttpError(421, detail);
    }
    if (url === PROBE || this.#mayPass(authorization)) return;
    const detail = 'send the header Authorization: Bearer TOKEN';
    throw new HttpError(401, detail, { 'www-authenticate': 'Bearer' });
  }

  /**
   * Generates IDs. If the tick is exhausted, waits without blocking other requests, until the client disconnects.
   * @param {number} count
   * @param {ServerResponse} response
   */
  async #draw(count, response) {
    if (this.#unread + count > MAX_UNREAD) {
      throw unavailable('too many IDs are requested at once: try again');
    }
    this.#unread += count;
    response.once('close', () => {
      this.#unread -= count;
    });
    const deadline = monotonic() + this.#limits.draw;
    // In parts of half a tick, so that others' requests for single IDs do not starve this one.
    const part = Math.max(1, 2 ** this.#flake.layout.sequenceBits / 2);
    /** @type {string[]} */
    const ids = [];
    while (ids.length < count && !response.destroyed) {
      try {
        const wanted = Math.min(part, count - ids.length);
        // A request for a single ID also waits for a renewal.
        if (wanted === 1) ids.push(String(await this.#flake.nextIdAsync()));
        else ids.push(...this.#flake.nextIdStrings(wanted));
      } catch (failure) {
        const { code, retryAfterMs } = /** @type {Refused} */ (failure);
        const wait = retryAfterMs ?? 0;
        if (code !== 'ERR_SNOWFLAKE_EXHAUSTED' || monotonic() + wait > deadline) {
          this.#refusal = { failure, until: monotonic() + (retryAfterMs ?? 1000) };
          throw failure;
        }
        await pause(Math.max(1, wait));
      }
    }
    this.#refusal = undefined;
    return ids;
  }

  /** The node and the time, for peers. */
  #node() {
    const { datacenterId, workerId } = this.#flake;
    return { datacenterId, workerId, now: unixNow() };
  }

  /** @param {string} id */
  #parse(id) {
    try {
      return this.#flake.parse(id);
    } catch (failure) {
      // The message has only the request's own value.
      throw new HttpError(400, /** @type {Error} */ (failure).message);
    }
  }

  /** Whether IDs are available, as far as that is known without generating one. */
  #checkHealth() {
    if (this.#refusal !== undefined && monotonic() < this.#refusal.until) {
      throw this.#refusal.failure;
    }
    if (healthOf(this.#flake).status === 'down') throw new HttpError(503, 'no ID is available');
    return { status: 'ok' };
  }

  /**
   * The headers and the problem details of a failure. Names of this host's files go only to the log.
   * @param {unknown} failure
   * @returns {{ headers: OutgoingHttpHeaders, problem: Problem }}
   */
  toProblem(failure) {
    const problemOf = (/** @type {number} */ status, /** @type {string} */ detail) => ({
      title: http.STATUS_CODES[status],
      status,
      detail,
    });
    if (failure instanceof HttpError) {
      return { headers: failure.headers, problem: problemOf(failure.status, failure.message) };
    }
    if (failure instanceof SnowFlakeError) {
      const { code, message, retryAfterMs } = /** @type {Refused} */ (failure);
      this.#log(code, `${code}: ${message}`);
      const detail = 'no ID is available: the log of the service has the reason';
      /** @type {OutgoingHttpHeaders} */
      const headers = {};
      if (retryAfterMs !== undefined)
        headers['retry-after'] = String(Math.ceil(retryAfterMs / 1000));
      return { headers, problem: { ...problemOf(503, detail), code, retryAfterMs } };
    }
    this.#log('500', redactForeign(inspect(failure)));
    return { headers: {}, problem: problemOf(500, 'the log of the service has the reason') };
  }
}

/**
 * Returns a log function that drops repetitions of a code within LOG_MS.
 * @param {ServerOptions['complain']} complain
 * @returns {Log}
 */
function createLog(complain) {
  /** @type {Map<string, number>} */
  const logged = new Map();
  return (code, text) => {
    const now = monotonic();
    if (now - (logged.get(code) ?? -LOG_MS) < LOG_MS) return;
    logged.set(code, now);
    complain(text);
  };
}

/**
 * Waits for the end of a request. Ignores its body.
 * @param {IncomingMessage} request
 */
async function readBody(request) {
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > MAX_BODY) {
      throw new HttpError(413, 'send no body');
    }
  }
}

/**
 * @param {SnowFlake} flake
 * @param {ServerOptions} options
 */
function createServer(flake, { token, complain, limits: given, bounds }) {
  const limits = { ...LIMITS, ...given };
  const log = createLog(complain);
  const connections = new Connections({ bounds, log });
  const service = new IdService(flake, { token, log, limits, connections });
  const options = {
    requestTimeout: limits.request,
    headersTimeout: limits.headers,
    keepAliveTimeout: limits.idle,
    connectionsCheckingInterval: limits.checks,
    maxHeaderSize: MAX_HEADERS,
  };
  /**
   * A newcomer gets only one response. An unread body would be read as the next request. A server that stops would wait for a
   * busy client as long as it sends requests.
   * @param {IncomingMessage} request
   */
  const keepsOpen = ({ socket, complete }) =>
    connections.isAuthorised(socket) && complete && server.listening;
  /** The connections with a request under way. */
  const busy = new WeakSet();
  /** @type {(request: IncomingMessage, response: ServerResponse) => Promise<void>} */
  const onRequest = async (request, response) => {
    const { socket } = request;
    // Refuses pipelined requests: Node would read all of them at once, and no common client sends any.
    if (busy.has(socket)) {
      socket.destroy();
      return;
    }
    busy.add(socket);
    response.once('close', () => busy.delete(socket));
    /** @type {(status: number, type: string, body: string, headers?: OutgoingHttpHeaders) => void} */
    const send = (status, type, body, headers) => {
      if (response.destroyed) return;
      response.writeHead(status, {
        'content-type': type,
        'content-length': Buffer.byteLength(body),
        // An ID from a cache would be a duplicate.
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        ...headers,
        ...(keepsOpen(request) ? {} : { connection: 'close' }),
      });
      response.end(body);
    };
    try {
      const value = await service.respond(request, response);
      if (typeof value === 'string') send(200, 'text/plain; version=0.0.4; charset=utf-8', value);
      else send(200, 'application/json', `${JSON.stringify(value)}\n`);
    } catch (failure) {
      // The client has disconnected.
      if (request.destroyed && !request.complete && response.destroyed) return;
      const { headers, problem } = service.toProblem(failure);
      send(problem.status, 'application/problem+json', `${JSON.stringify(problem)}\n`, headers);
    }
  };
  const server = http.createServer(options, onRequest);
  server.on('connection', (socket) => connections.add(socket));
  // Otherwise Node itself responds to an unknown Expect, and keeps the connection for ever.
  server.on('checkExpectation', onRequest);
  // This also ends a client that does not read its response.
  server.timeout = limits.idle;
  return server;
}

module.exports = { MAX_COUNT, createServer };
