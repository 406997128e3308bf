'use strict';
// A register in S3, or a store of its protocol with conditional writes, as objects.js says. The version is the ETag.

const { configError, describe } = require('../messages/errors.js');
const { NONE, ownOf, propertyOf } = require('../ids/properties.js');
const { createSend, loadS3 } = require('./aws.js');
const { checkPrefix, createObjects, namespacesOf } = require('./objects.js');
const { readOptions } = require('./options.js');

/** @import { Failure } from './aws.js' */

/** An object that was read. @typedef {{ Body?: { transformToString(): Promise<string> }, ETag?: unknown }} Read */
/** A page of a list. @typedef {{ CommonPrefixes?: { Prefix?: string }[], NextContinuationToken?: string }} Page */

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
  checkPrefix(prefix);
  const name = `s3:${bucket}/${prefix}/${namespace}`;
  const sendCommand = createSend(client, CLIENT, loadS3);

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

  return createObjects({
    name,
    root: `${prefix}/${namespace}`,
    versionName: 'ETag',
    noVersion: NO_ETAG,
    lacksConditions,

    // Without one, or with a '*', the write would have no condition.
    isVersion: (etag) => typeof etag === 'string' && etag !== '' && etag !== '*',

    async get(Key, signal) {
      const answer = await send('GetObjectCommand', { Key }, signal, isMissing);
      const { reply, refusal, now } = answer;
      if (refusal !== undefined) return { now };
      const { Body, ETag } = ownOf(/** @type {Read} */ (reply));
      return { text: await Body?.transformToString(), version: ETag, now };
    },

    async put(Key, Body, etag, signal) {
      const condition = etag === undefined ? { IfNoneMatch: '*' } : { IfMatch: etag };
      const input = { Key, Body, ...condition };
      const { reply = NONE, refusal, now } = await send('PutObjectCommand', input, signal, isUnmet);
      if (refusal !== undefined) {
        return { refusal: statusOf(refusal) === 409 ? 'busy' : 'unmet', now };
      }
      if (propertyOf(/** @type {Read} */ (reply), 'ETag')) return { now };
      throw new Error('it confirmed a write without the ETag of what it has written');
    },

    async namespaces(signal) {
      const names = [];
      /** @type {string | undefined} */
      let token;
      do {
        const input = { Prefix: `${prefix}/`, Delimiter: '/', ContinuationToken: token };
        const { reply } = await send('ListObjectsV2Command', input, signal);
        const { CommonPrefixes = [], NextContinuationToken } = ownOf(/** @type {Page} */ (reply));
        names.push(...namespacesOf(CommonPrefixes.map(({ Prefix }) => Prefix)));
        token = NextContinuationToken;
      } while (token !== undefined);
      return names;
    },
  });
}

/** @satisfies {typeof import('./s3.js')} */
module.exports = { s3 };
