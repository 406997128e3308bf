'use strict';
// The AWS SDK in small, for tests that run without its packages: clients and commands with what snowdrift uses of them,
// and services in memory. Loading this file replaces the SDK's packages by it.

const { createHash } = require('node:crypto');
const Module = require('node:module');

const { _resolveFilename: resolve } = Module;
Module._resolveFilename = (request, ...rest) =>
  request.startsWith('@aws-sdk/client-') ? __filename : resolve.call(Module, request, ...rest);

/** An error as the SDK makes it of a reply. */
const serviceError = (name, message, status = 400, more = {}) =>
  Object.assign(new Error(message), { name, $metadata: { httpStatusCode: status }, ...more });

class Command {
  #middleware = (next) => next;
  middlewareStack = {
    add: (middleware) => {
      this.#middleware = middleware;
    },
  };

  constructor(input) {
    this.input = input;
  }

  async run({ signed: headers, body }, respond) {
    let result;
    const { response } = await this.#middleware(async () => {
      result = await respond();
      return { response: { headers: result.headers, body } };
    })({ request: { headers } });
    for await (const _ of response.body ?? []);
    if (result.failure) throw result.failure;
    return result.reply;
  }
}

class GetItemCommand extends Command {}
class PutItemCommand extends Command {}
class ScanCommand extends Command {}
class GetObjectCommand extends Command {}
class PutObjectCommand extends Command {}
class ListObjectsV2Command extends Command {}

class Client {
  /** The commands that were sent. */
  sent = [];
  isDestroyed = false;
  /** The headers of a signed request. */
  signed = {};
  /** The body of each reply, which the client reads and forgets. */
  body;
  /** Of a reply. */
  headers = () => ({ date: new Date().toUTCString() });

  /** @param service a function of a command, which returns a reply or throws a failure */
  constructor(service) {
    this.service = service;
  }

  async send(command, { abortSignal }) {
    abortSignal.throwIfAborted();
    this.sent.push(command);
    // As over a network: the caller's signal may abort meanwhile.
    await new Promise(setImmediate);
    return command.run(this, async () => {
      try {
        return { reply: await this.service(command), headers: this.headers() };
      } catch (failure) {
        return { failure, headers: this.headers() };
      }
    });
  }

  destroy() {
    this.isDestroyed = true;
  }
}

/** A client of URLs. The class has those that were opened, with their options; each answers as its `service` does. */
const byUrl = () =>
  class ClientOfUrl extends Client {
    static opened = [];
    static service = () => ({});

    constructor(options) {
      super((command) => ClientOfUrl.service(command));
      ClientOfUrl.opened.push({ client: this, options });
    }
  };

const DynamoDBClient = byUrl();
const S3Client = byUrl();

/**
 * DynamoDB with one table.
 * @param stored its items, by id
 * @param tells whether a refused write returns the item, as ReturnValuesOnConditionCheckFailure asks
 */
function dynamo(stored = new Map(), { tells = true } = {}) {
  return (command) => {
    const { input } = command;
    if (command instanceof ScanCommand) {
      const suffix = input.ExpressionAttributeValues[':key'].S;
      const ids = [...stored.keys()].sort().filter((id) => id.includes(suffix));
      // A page has one item.
      const at =
        input.ExclusiveStartKey === undefined ? 0 : ids.indexOf(input.ExclusiveStartKey) + 1;
      const Items = ids.slice(at, at + 1).map((S) => ({ id: { S } }));
      return { Items, LastEvaluatedKey: at + 1 < ids.length ? ids[at] : undefined };
    }
    const { id } = input.Item ?? input.Key;
    const found = stored.get(id.S);
    if (command instanceof GetItemCommand) return { Item: found };
    const before = input.ExpressionAttributeValues?.[':before'].S;
    if (found?.token?.S === before) {
      stored.set(id.S, input.Item);
      return { Attributes: found };
    }
    const Item = tells ? found : undefined;
    throw serviceError('ConditionalCheckFailedException', 'The conditional request failed', 400, {
      Item,
    });
  };
}

const bodyOf = (text) => ({ transformToString: async () => String(text) });
const etagOf = (body) => `"${createHash('md5').update(body).digest('hex')}"`;

/**
 * S3 with one bucket.
 * @param stored the texts of its objects, by key
 * @param ignores the conditions that it ignores
 */
function bucket(stored = new Map(), { ignores = [] } = {}) {
  return (command) => {
    const { Key, Body, Prefix, ContinuationToken, ...input } = command.input;
    if (command instanceof ListObjectsV2Command) {
      const names = [...stored.keys()].map((key) => key.slice(Prefix.length).split('/')[0]);
      const prefixes = [...new Set(names)].sort().map((name) => ({ Prefix: `${Prefix}${name}/` }));
      // A page has one.
      const at = Number(ContinuationToken ?? 0);
      const NextContinuationToken = at + 1 < prefixes.length ? String(at + 1) : undefined;
      return { CommonPrefixes: prefixes.slice(at, at + 1), NextContinuationToken };
    }
    const found = stored.get(Key);
    if (command instanceof GetObjectCommand) {
      if (found === undefined) throw serviceError('NoSuchKey', 'The key does not exist.', 404);
      return { Body: bodyOf(found), ETag: etagOf(found) };
    }
    const { IfMatch, IfNoneMatch } = Object.fromEntries(
      Object.entries(input).filter(([name]) => !ignores.includes(name)),
    );
    if (IfMatch !== undefined && found === undefined) {
      throw serviceError('NoSuchKey', 'The key does not exist.', 404);
    }
    const isOther = IfMatch !== undefined && IfMatch !== etagOf(found);
    if (isOther || (IfNoneMatch === '*' && found !== undefined)) {
      throw serviceError('PreconditionFailed', 'A condition did not hold', 412);
    }
    stored.set(Key, Body);
    return { ETag: etagOf(Body) };
  };
}

module.exports = {
  ...{ Client, DynamoDBClient, GetItemCommand, PutItemCommand, ScanCommand },
  ...{ S3Client, GetObjectCommand, PutObjectCommand, ListObjectsV2Command },
  ...{ bodyOf, bucket, dynamo, etagOf, serviceError },
};
