'use strict';
// A register in DynamoDB. A record is an item `{ id: 'NAMESPACE#KEY', token, text }` of a table whose partition key is `id`.
//
// A write puts the item if the token of the present one is its predecessor's. Reads are consistent: those that are not may
// come from a replica that lags. Another Region's replica of a global table lags, too, and its conditions see only itself.

const { configError, describe } = require('../messages/errors.js');
const { ownOf, propertyOf } = require('../ids/properties.js');
const { createSend, loadDynamoDB } = require('./aws.js');
const { readOptions } = require('./options.js');
const { createRegister, decode } = require('./register.js');
const { neededTime } = require('./reply-time.js');

/** @import { Failure } from './aws.js' */

/** @typedef {{ id?: { S?: string }, token?: { S?: string }, text?: { S?: string } }} Item */
/** Of a scan. @typedef {{ Items?: Item[], LastEvaluatedKey?: object }} Page */

const CLIENT = 'dynamodb() takes a DynamoDBClient of @aws-sdk/client-dynamodb';

/** Creates a table for records. @param {string} table */
const creation = (table) =>
  `aws dynamodb create-table --table-name ${table} --attribute-definitions AttributeName=id,AttributeType=S --key-schema AttributeName=id,KeyType=HASH --billing-mode PAY_PER_REQUEST`;

/** The item that a reply or a refusal has. @param {unknown} reply */
const itemOf = (reply) => propertyOf(/** @type {{ Item?: Item }} */ (reply), 'Item');

/** @type {typeof import('./dynamodb.d.ts').dynamodb} */
function dynamodb(client, options) {
  const { namespace, table = 'snowdrift_records' } = readOptions(options, ['namespace', 'table']);
  if (typeof table !== 'string' || !/^[\w.-]{3,255}$/.test(table)) {
    throw configError(
      `table must be the name of a table, 3 to 255 letters, digits, '_', '.' or '-'; it is ${describe(table)}`,
    );
  }
  const name = `dynamodb:${table}/${namespace}`;
  const sendCommand = createSend(client, CLIENT, loadDynamoDB);
  /** @param {string} key */
  const idOf = (key) => ({ id: { S: `${namespace}#${key}` } });

  /** @type {typeof sendCommand} */
  async function send(command, input, signal, isRefusal) {
    try {
      return await sendCommand(command, { TableName: table, ...input }, signal, isRefusal);
    } catch (thrown) {
      const failure = /** @type {Failure} */ (thrown);
      const isOther = failure.name === 'ValidationException' && /\bkey\b/.test(failure.message);
      if (failure.name !== 'ResourceNotFoundException' && !isOther) throw failure;
      const lack = isOther
        ? 'has another key than the text id'
        : 'is not in this account and Region';
      throw configError(`${name}: the table ${table} ${lack}: create one, ${creation(table)}`);
    }
  }

  /**
   * @param {string} key
   * @param {Item | undefined} item
   */
  function recordOf(key, item) {
    if (item === undefined) return undefined;
    const texts = [item.token?.S, item.text?.S];
    const isRecord = texts.every((text) => typeof text === 'string');
    return decode(name, key, isRecord ? texts.join(' ') : JSON.stringify(item));
  }

  /**
   * @param {string} key
   * @param {AbortSignal} signal
   */
  async function read(key, signal) {
    const { reply, now } = await send(
      'GetItemCommand',
      { Key: idOf(key), ConsistentRead: true },
      signal,
    );
    return { record: recordOf(key, itemOf(reply)), now };
  }

  return createRegister({
    name,
    // A write costs a unit for each KiB of its record.
    bucketSize: 8,
    read,

    async now(signal) {
      return neededTime((await read('namespace', signal)).now);
    },

    async write(key, { token, text }, before, signal) {
      const isAsBefore = {
        ConditionExpression: '#token = :before',
        ExpressionAttributeNames: { '#token': 'token' },
        ExpressionAttributeValues: { ':before': { S: before } },
      };
      const { reply, refusal, now } = await send(
        'PutItemCommand',
        {
          Item: { ...idOf(key), token: { S: token }, text: { S: text } },
          ...(before === undefined
            ? { ConditionExpression: 'attribute_not_exists(id)' }
            : isAsBefore),
          ReturnValues: 'ALL_OLD',
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        },
        signal,
        ({ name }) => name === 'ConditionalCheckFailedException',
      );
      if (refusal === undefined) {
        const { Attributes } = ownOf(/** @type {{ Attributes?: Item }} */ (reply));
        if (Attributes?.token?.S === before) return { isWritten: true, now };
        throw new Error('it confirmed a write without the token of what it has replaced');
      }
      const item = itemOf(refusal);
      // There was none, or the service does not tell, as some that are compatible.
      const isUntold = item === undefined;
      const found = isUntold ? (await read(key, signal)).record : recordOf(key, item);
      return { isWritten: false, found, now };
    },

    async namespaces(signal) {
      const names = [];
      let ExclusiveStartKey;
      do {
        const input = {
          FilterExpression: 'contains(id, :key)',
          ExpressionAttributeValues: { ':key': { S: '#namespace' } },
          ProjectionExpression: 'id',
          ExclusiveStartKey,
        };
        const { reply } = await send('ScanCommand', input, signal);
        const { Items = [], LastEvaluatedKey } = ownOf(/** @type {Page} */ (reply));
        for (const { id } of Items) names.push(String(id?.S).split('#')[0]);
        ExclusiveStartKey = LastEvaluatedKey;
      } while (ExclusiveStartKey !== undefined);
      return names;
    },
  });
}

/** @satisfies {typeof import('./dynamodb.js')} */
module.exports = { dynamodb };
