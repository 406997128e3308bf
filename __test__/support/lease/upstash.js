'use strict';
// A stand-in for Upstash: its REST API, as it documents that, in front of a real Redis.
//
// POST / has a command as a JSON array, POST /pipeline a list of them. A reply is { result } or { error }, with status 400; each
// text of it in base64 where the header Upstash-Encoding asks for that, but for 'OK'.

const { timingSafeEqual } = require('node:crypto');
const { once } = require('node:events');
const { createServer } = require('node:http');

const { Server } = require('./servers.js');

const TOKEN = 'AXhbASQgT0tlbg==';

const encode = (value) => {
  if (Array.isArray(value)) return value.map(encode);
  return typeof value === 'string' && value !== 'OK'
    ? Buffer.from(value).toString('base64')
    : value;
};

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts));
}

const isToken = (given) =>
  given?.length === TOKEN.length && timingSafeEqual(Buffer.from(given), Buffer.from(TOKEN));

class Upstash {
  token = TOKEN;
  /** Whether it answers nothing. */
  isSilent = false;
  /** What it answers instead: { status, body }. */
  instead;
  requests = 0;
  #http;
  #redis;
  #client;

  static async start() {
    const upstash = new Upstash();
    upstash.#redis = await Server.start('redis');
    upstash.#connect();
    upstash.#http = createServer((request, response) => upstash.#answer(request, response));
    upstash.#http.listen(0, '127.0.0.1');
    await once(upstash.#http, 'listening');
    return upstash;
  }

  #connect() {
    this.#client?.disconnect();
    this.#client = new (require('ioredis'))(this.#redis.url);
    this.#client.on('error', () => {});
  }

  get url() {
    return `http://127.0.0.1:${this.#http.address().port}`;
  }

  /** For a lease from `upstash:///`. */
  get env() {
    return { UPSTASH_REDIS_REST_URL: this.url, UPSTASH_REDIS_REST_TOKEN: this.token };
  }

  get client() {
    return this.#client;
  }

  async #run([name, ...words], isEncoded) {
    try {
      const result = await this.#client.call(String(name).toLowerCase(), ...words.map(String));
      return { result: isEncoded ? encode(result) : result };
    } catch ({ message }) {
      return { error: message };
    }
  }

  async #answer(request, response) {
    this.requests++;
    const body = await bodyOf(request);
    if (this.isSilent) return;
    const say = (status, what) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(typeof what === 'string' ? what : JSON.stringify(what));
    };
    if (this.instead) {
      say(this.instead.status, this.instead.body);
      return;
    }
    const [, given] = /^Bearer (.*)$/.exec(request.headers.authorization ?? '') ?? [];
    if (!isToken(given)) {
      say(401, { error: 'WRONGPASS invalid or missing auth token' });
      return;
    }
    const isEncoded = request.headers['upstash-encoding'] === 'base64';
    if (request.url === '/pipeline') {
      const replies = [];
      for (const command of body) replies.push(await this.#run(command, isEncoded));
      say(200, replies);
      return;
    }
    const reply = await this.#run(body, isEncoded);
    say(reply.error === undefined ? 200 : 400, reply);
  }

  /** As in a power cut of the database; it keeps what it has confirmed. */
  async restart() {
    await this.#redis.kill();
    await this.#redis.run();
    this.#connect();
  }

  async stop() {
    this.#http.close();
    this.#http.closeAllConnections();
    this.#client.disconnect();
    await this.#redis.stop();
  }
}

module.exports = { Upstash };
