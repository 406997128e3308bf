'use strict';
// A register in S3, or a store of its protocol with conditional writes. A record is an object `TOKEN TEXT` under
// `PREFIX/NAMESPACE/KEY`.
//
// A write first reads the object and compares its token. Then it puts the new one if the ETag is still the one of that reply,
// or, where there was none, if there still is none. A store may ignore that: before its first write, a register tries it.

const { configError, describe } = require('../messages/errors.js');
const { NONE, ownOf, propertyOf } = require('../ids/properties.js');
const { createSend, loadS3 } = require('./aws.js');
const { readOptions } = require('./options.js');
const { createRegister, decode, encode } = require('./register.js');

/** @import { Failure } from './aws.js' */

/** An object that was read. @typedef {{ Body?: { transformToString(): Promise<string> }, ETag?: unknown }} Read */
/** A page of a list. @typedef {{ CommonPrefixes?: { Prefix?: string }[], NextContinuationToken?: string }} Page */
/** @typedef {{ IfNoneMatch: '*' } | { IfMatch: string }} Condition */

const CLIENT = 's3() takes an S3Client of @aws-sdk/client-s3';

/** An ETag that no object has. */
const NO_ETAG = '"00000000000000000000000000000000"';

/** @param {Failure} failure */
const statusOf = ({ $metadata }) => $metadata?.httpStatusCode ?? 0;

/** @param {Failure} failure */
const isMissing = (failure) => statusOf(failure) === 404 && failure.name !== 'NoSuchBucket';

/** Whether a condition was not met, or another write was under way. @param {Failure} failure */
const isUnmet = (failure) => isMissing(failure) || [304, 409, 412].includes(statusOf(failure));

/** @type {typeof import('./s3.d.ts').s3} */
function s3(client, options) {
  const given = readOptions(options, ['namespace', 'bucket', 'prefix']);
  const { namespace, bucket, prefix = 'snowdrift' } = given;
  if (typeof bucket !== 'string' || !/^[\w.-]{3,63}$/.test(bucket)) {
    throw configError(`bucket must be the name of a bucket; it is ${describe(bucket)}`);
  }
  if (typeof prefix !== 'string' || !/^[\w.-]+([/][\w.-]+)*$/.test(prefix) || prefix.length > 300) {
    throw configError(
      `prefix must be letters, digits, '_', '.', '-' and '/' between them, 1 to 300 characters; it is ${describe(prefix)}`,
    );
  }
  const name = `s3:${bucket}/${prefix}/${namespace}`;
  const sendCommand = createSend(client, CLIENT, loadS3);
  let isProbed = false;

  /** @type {typeof sendCommand} */
  async function send(command, input, signal, isRefusal) {
    try {
      return await sendCommand(command, { Bucket: bucket, ...input }, signal, isRefusal);
    } catch (thrown) {
      const failure = /** @type {Failure} */ (thrown);
      if (failure.name === 'NoSuchBucket') {
        throw configError(`${name}: there is no bucket ${bucket}: create it, or correct its name`);
      }
      if (statusOf(failure) === 501) throw lacksConditions();
      if (statusOf(failure) !== 403 || command !== 'GetObjectCommand') throw failure;
      const why = 'S3 also denies to read what is not there, without the right s3:ListBucket';
      throw Object.assign(new Error(`${failure.message}. ${why}`), { name: failure.name });
    }
  }

  const lacksConditions = () =>
    configError(
      `${name} cannot lease worker IDs: it writes whether or not the conditions If-None-Match and If-Match are met, or refuses them. Use S3, a store that documents them for PutObject, or a newer version of it or of @aws-sdk/client-s3`,
    );

  /** @param {string} key */
  const keyOf = (key) => `${prefix}/${namespace}/${key}`;

  /**
   * @param {string} key
   * @param {AbortSignal} signal
   */
  async function get(key, signal) {
    const answer = await send('GetObjectCommand', { Key: keyOf(key) }, signal, isMissing);
    const { reply, refusal, now } = answer;
    if (refusal !== undefined) return { record: undefined, etag: undefined, now };
    const { Body, ETag } = ownOf(/** @type {Read} */ (reply));
    return { record: decode(name, key, await Body?.transformToString()), etag: ETag, now };
  }

  /**
   * @param {string} key
   * @param {string} text
   * @param {Condition} condition
   * @param {AbortSignal} signal
   */
  async function put(key, text, condition, signal) {
    const input = { Key: keyOf(key), Body: text, ...condition };
    const answer = await send('PutObjectCommand', input, signal, isUnmet);
    const { reply = NONE, refusal } = answer;
    if (refusal !== undefined || propertyOf(/** @type {Read} */ (reply), 'ETag')) return answer;
    throw new Error('it confirmed a write without the ETag of what it has written');
  }

  /** Refuses a store that ignores conditions. @param {AbortSignal} signal */
  async function probe(signal) {
    /** @param {Condition} condition */
    const isDone = async (condition) =>
      (await put('probe', 'snowdrift', condition, signal)).refusal === undefined;
    const create = () => isDone({ IfNoneMatch: '*' });
    // The object of an earlier probe may be there.
    const isCreatedTwice = (await create()) && (await create());
    if (isCreatedTwice || (await isDone({ IfMatch: NO_ETAG }))) throw lacksConditions();
    isProbed = true;
  }

  return createRegister({
    name,
    // A bucket may keep every version, and a call takes long.
    bucketSize: 8,
    // Each write has its price, whatever its size.
    ttl: 180_000,

    async now(signal) {
      const { now } = await get('namespace', signal);
      if (now !== undefined) return now;
      throw new Error('its replies have no header Date, which is its clock');
    },

    async read(key, signal) {
      const { record, now } = await get(key, signal);
      return { record, now };
    },

    async write(key, record, before, signal) {
      if (!isProbed) await probe(signal);
      /** @type {{ etag: unknown } | undefined} */
      let refused;
      for (;;) {
        const { record: found, etag, now } = await get(key, signal);
        if (found?.token !== before) return { isWritten: false, found, now };
        // Without one, or with a '*', the write would have no condition.
        const isEtag = typeof etag === 'string' && etag !== '' && etag !== '*';
        if (found !== undefined && !isEtag) {
          throw new Error(`it returned an object with the ETag ${describe(etag)}`);
        }
        if (refused !== undefined && refused.etag === etag) {
          throw new Error(`it refused to replace what it has, by the ETag ${describe(etag)}`);
        }
        /** @type {Condition} */
        const condition = isEtag ? { IfMatch: etag } : { IfNoneMatch: '*' };
        const answer = await put(key, encode(record), condition, signal);
        if (answer.refusal === undefined) return { isWritten: true, now: answer.now };
        // While another write is under way, that one may fail.
        refused = statusOf(answer.refusal) === 409 ? undefined : { etag };
      }
    },

    async namespaces(signal) {
      const names = [];
      /** @type {string | undefined} */
      let token;
      do {
        const input = { Prefix: `${prefix}/`, Delimiter: '/', ContinuationToken: token };
        const { reply } = await send('ListObjectsV2Command', input, signal);
        const { CommonPrefixes = [], NextContinuationToken } = ownOf(/** @type {Page} */ (reply));
        for (const { Prefix } of CommonPrefixes) names.push(String(Prefix).split('/').at(-2));
        token = NextContinuationToken;
      } while (token !== undefined);
      return /** @type {string[]} */ (names);
    },
  });
}

/** @satisfies {typeof import('./s3.js')} */
module.exports = { s3 };
