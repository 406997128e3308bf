'use strict';
// A register in the API server of Kubernetes. A record is a Lease of coordination.k8s.io/v1, `snowdrift.NAMESPACE.KEY`,
// with token, text and key in annotations.
//
// A JSON Patch tests the token and replaces it. The server applies all of a patch or nothing, and applies it anew to
// what another request wrote meanwhile. The condition is not resourceVersion: a restored etcd counts it again. A test
// that fails has the status of each patch that cannot be applied, so a read tells what there is.
//
// A GET without resourceVersion reads from etcd, and not from a cache of the API server. etcd must keep what it has confirmed: no
// `--unsafe-no-fsync`.

const { noteClient } = require('../messages/causes.js');
const { ownOf } = require('../ids/properties.js');
const { formatConflict } = require('./failures.js');
const { createClient } = require('./kubernetes-client.js');
const { readOptions } = require('./options.js');
const { createRegister, decode } = require('./register.js');
const { neededTime } = require('./reply-time.js');
const { refusalOf } = require('./requests.js');

/** @import { Answer, LeaseObject } from './kubernetes-client.js' */

const OPTIONS = ['namespace', 'server', 'token', 'ca', 'kubernetesNamespace'];

/** Its '/' would be '~1' in a patch's path. */
const [TOKEN, TEXT, KEY] = ['snowdrift/token', 'snowdrift/text', 'snowdrift/key'];

/** Statuses of writes whose condition may not hold: there is none, there is one, and it has another token. */
const REFUSED = [404, 409, 422];

/**
 * A part of an object's name, which has lower-case letters, digits and '-', and '-' at neither end: `Ab_` is `x41bx5f`.
 * @param {string} text
 */
const partOf = (text) =>
  text.replace(/[^a-wyz\d-]|^-|-$/g, (character) => `x${character.charCodeAt(0).toString(16)}`);

/** @param {Answer} answer */
const refused = (answer) => noteClient(refusalOf('Kubernetes', answer, answer.reply.message));

/** Proxies also return 200. @param {Answer} answer */
const isLease = ({ status, reply }) => (status === 200 || status === 201) && reply.kind === 'Lease';

/** @param {LeaseObject} object */
const annotationsOf = (object) => ownOf(ownOf(ownOf(object).metadata).annotations);

/** @type {typeof import('./kubernetes.d.ts').kubernetes} */
function kubernetes(options) {
  const { namespace, ...access } = readOptions(options, OPTIONS);
  const { place, request, close } = createClient(ownOf(access));
  const name = `kubernetes:${place}/${namespace}`;
  /** @param {string} key */
  const nameOf = (key) => ['snowdrift', namespace, ...key.split('/')].map(partOf).join('.');

  /**
   * @param {string} key
   * @param {LeaseObject} object
   */
  function recordOf(key, object) {
    const { [TOKEN]: token, [TEXT]: text, [KEY]: own } = annotationsOf(object);
    if (own === `${namespace}/${key}` && typeof text === 'string') {
      return decode(name, key, `${token} ${text}`);
    }
    throw formatConflict(name, `the Lease '${nameOf(key)}' is not that of a record: remove it`);
  }

  /**
   * Gets a Lease, or the word that there is none.
   * @param {string} key
   * @param {AbortSignal} signal
   */
  async function get(key, signal) {
    const answer = await request('GET', `/${nameOf(key)}`, signal);
    const { status, reply } = answer;
    // Not what a proxy says of a path that it does not know.
    const { name: missing, kind } = ownOf(reply.details);
    const isMissing = status === 404 && missing === nameOf(key) && kind === 'leases';
    if (isMissing || isLease(answer)) return { ...answer, isMissing };
    throw refused(answer);
  }

  /**
   * @param {string} key
   * @param {AbortSignal} signal
   */
  async function read(key, signal) {
    const answer = await get(key, signal);
    const record = answer.isMissing ? undefined : recordOf(key, answer.reply);
    return { record, now: neededTime(answer.now) };
  }

  return createRegister({
    name,
    // etcd keeps each version until the API server compacts it, by default after 5 minutes.
    bucketSize: 8,
    notesErrors: true,
    close,
    read,
    now: async (signal) => neededTime((await get('namespace', signal)).now),

    async write(key, { token, text }, before, signal) {
      const object = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: {
          name: nameOf(key),
          labels: {
            'app.kubernetes.io/managed-by': 'snowdrift',
            'snowdrift/record': key.replace('/', '.'),
          },
          annotations: { [TOKEN]: token, [TEXT]: text, [KEY]: `${namespace}/${key}` },
        },
      };
      const patch = [
        { op: 'test', path: '/metadata/annotations/snowdrift~1token', value: before },
        { op: 'replace', path: '/metadata/annotations/snowdrift~1token', value: token },
        { op: 'replace', path: '/metadata/annotations/snowdrift~1text', value: text },
      ];
      const answer =
        before === undefined
          ? await request('POST', '', signal, object)
          : await request('PATCH', `/${nameOf(key)}`, signal, patch);
      const { status, reply } = answer;
      if (isLease(answer)) {
        const written = recordOf(key, reply);
        if (written?.token === token && written.text === text)
          return { isWritten: true, now: neededTime(answer.now) };
        throw noteClient(
          new Error(
            `Kubernetes returned ${status} and another record: an admission webhook changes it`,
          ),
        );
      }
      if (!REFUSED.includes(status ?? 0)) throw refused(answer);
      const { record: found, now } = await read(key, signal);
      // Refused for another reason.
      if (found?.token === before) throw refused(answer);
      return { isWritten: false, found, now };
    },

    /** Needs the right to list, without which nobody is warned of other namespaces. */
    async namespaces(signal) {
      const names = [];
      for (let rest = ''; ; ) {
        const query = `?labelSelector=snowdrift/record=namespace&limit=50${rest}`;
        const answer = await request('GET', query, signal);
        if (answer.status === 403) return names;
        const { items, metadata } = answer.reply;
        if (answer.status !== 200 || !items) throw refused(answer);
        for (const item of items) names.push(String(annotationsOf(item)[KEY]).split('/')[0]);
        const { continue: next } = ownOf(metadata);
        if (!next) return names;
        rest = `&continue=${encodeURIComponent(next)}`;
      }
    },
  });
}

/** @satisfies {typeof import('./kubernetes.js')} */
module.exports = { kubernetes };
