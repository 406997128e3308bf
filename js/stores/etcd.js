'use strict';
// A register in etcd, 3.4 or later, through its v3 JSON gateway. A record is `TOKEN TEXT` under the key
// `snowdrift/NAMESPACE/records/KEY`.
//
// A transaction compares the value and puts the new one; otherwise it reads what is there, in the same step. The caller
// knows only the token, and values compare as bytes: a value that is greater than the token and less than the token and
// a '!', the character after the space, begins with the token and a space. Revisions are no condition: a restored
// member counts them again.
//
// Reads are linearizable: etcd's default, which a request must not turn off. Its members must keep what they have
// confirmed: no `--unsafe-no-fsync`.

const { ownOf } = require('../ids/properties.js');
const { createClient } = require('./etcd-client.js');
const { readOptions } = require('./options.js');
const { createRegister, decode, encode } = require('./register.js');
const { neededTime } = require('./reply-time.js');

/** @import { Reply } from './etcd-client.js' */

/** @param {string} text */
const toBase64 = (text) => Buffer.from(text).toString('base64');
/** @param {string | undefined} base64 */
const toText = (base64) => Buffer.from(base64 ?? '', 'base64').toString();

/** @type {typeof import('./etcd.d.ts').etcd} */
function etcd(urls, options) {
  const { namespace, ...access } = readOptions(options, ['namespace', 'user', 'password', 'tls']);
  const { hosts, post, close } = createClient(urls, access);
  const name = `etcd:${hosts}/${namespace}`;
  const root = `snowdrift/${namespace}/records/`;
  /** @param {string} key */
  const keyOf = (key) => toBase64(root + key);

  /**
   * The record of a reply to a range of one key.
   * @param {string} key
   * @param {Reply} reply
   */
  const recordOf = (key, reply) => {
    const [found] = ownOf(reply).kvs ?? [];
    return found && decode(name, key, toText(found.value));
  };

  return createRegister({
    name,
    // Each write keeps the record before it until the next compaction.
    bucketSize: 8,
    notesErrors: true,
    close,
    now: async (signal) => neededTime((await post('/v3/maintenance/status', {}, signal)).now),

    async read(key, signal) {
      const answer = await post('/v3/kv/range', { key: keyOf(key) }, signal);
      return { record: recordOf(key, answer.reply), now: neededTime(answer.now) };
    },

    async write(key, record, before, signal) {
      /**
       * @param {string} target
       * @param {string} result
       * @param {{ create_revision: string } | { value: string }} value
       */
      const is = (target, result, value) => ({ key: keyOf(key), target, result, ...value });
      const compare =
        before === undefined
          ? [is('CREATE', 'EQUAL', { create_revision: '0' })]
          : [
              is('VALUE', 'GREATER', { value: toBase64(before) }),
              is('VALUE', 'LESS', { value: toBase64(`${before}!`) }),
            ];
      const success = [{ request_put: { key: keyOf(key), value: toBase64(encode(record)) } }];
      const failure = [{ request_range: { key: keyOf(key) } }];
      const answer = await post('/v3/kv/txn', { compare, success, failure }, signal);
      // etcd leaves out what is false.
      const { succeeded, responses } = ownOf(answer.reply);
      const now = neededTime(answer.now);
      if (succeeded) return { isWritten: true, now };
      return { isWritten: false, found: recordOf(key, responses[0].response_range), now };
    },

    /** Steps from the first key of each to the first one after all of its keys. */
    async namespaces(signal) {
      const names = [];
      for (let key = 'snowdrift/'; ; key = `snowdrift/${names.at(-1)}/\x7f`) {
        const range = {
          key: toBase64(key),
          range_end: toBase64('snowdrift/\x7f'),
          keys_only: true,
        };
        const { reply } = await post('/v3/kv/range', { ...range, limit: 1 }, signal);
        const [found] = reply.kvs ?? [];
        if (found === undefined) return names;
        names.push(toText(found.key).split('/')[1]);
      }
    },
  });
}

/** @satisfies {typeof import('./etcd.js')} */
module.exports = { etcd };
