'use strict';
// The AWS SDK in small, for tests that run without its packages: clients and commands with what snowdrift uses of them,
// and services in memory. Whoever loads this file has the SDK's packages replaced by it.

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

  async run(respond) {
    let result;
    await this.#middleware(async () => {
      result = await respond();
      return { response: { headers: result.headers } };
    })({});
    if (result.failure) throw result.failure;
    return result.reply;
  }
}

class GetItemCommand extends Command {}
class PutItemCommand extends Command {}
class ScanCommand extends Command {}

class Client {
  /** The commands that were sent. */
  sent = [];
  isDestroyed = false;
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
    return command.run(async () => {
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

/** The clients that were opened by URLs, with their options; each answers as `DynamoDBClient.service` does. */
class DynamoDBClient extends Client {
  static opened = [];
  static service = () => ({});

  constructor(options) {
    super((command) => DynamoDBClient.service(command));
    DynamoDBClient.opened.push({ client: this, options });
  }
}

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
      return {};
    }
    const Item = tells ? found : undefined;
    throw serviceError('ConditionalCheckFailedException', 'The conditional request failed', 400, {
      Item,
    });
  };
}

module.exports = {
  ...{ Client, DynamoDBClient, GetItemCommand, PutItemCommand, ScanCommand },
  ...{ dynamo, serviceError },
};
