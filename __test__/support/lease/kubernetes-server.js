'use strict';
// A stand-in for the API server of Kubernetes: Leases of coordination.k8s.io/v1 over HTTPS. It follows what Kubernetes documents of
// its API (statuses and their reasons, names, JSON Patch with its tests, lists in parts, authorization by verb), and was
// compared with kube-apiserver 1.20 (kubernetes.test.js runs on both). It is no Kubernetes.
//
//   node kubernetes-server.js FOLDER PORT
//
// FOLDER has the certificate, its key, and `token`: who has what that file says now may do RIGHTS. Leases are files there.

const { randomUUID } = require('node:crypto');
const { existsSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const https = require('node:https');
const { join } = require('node:path');
const { isDeepStrictEqual } = require('node:util');

/** The verbs of the Role in examples/kubernetes-rights.yaml, the right to list, and what operators need. */
const RIGHTS = ['get', 'create', 'patch', 'list', 'delete'];
const USER = 'system:serviceaccount:ids:web';
/** That of a DNS subdomain. */
const NAME = /^(?=.{1,253}$)[a-z\d]([a-z\d-]*[a-z\d])?(\.[a-z\d]([a-z\d-]*[a-z\d])?)*$/;
const MOST_OF_ANNOTATIONS = 2 ** 18;
const LEASES = /^\/apis\/coordination\.k8s\.io\/v1\/namespaces\/([^/]+)\/leases(?:\/([^/]+))?$/;
const VERBS = { POST: 'create', PATCH: 'patch', DELETE: 'delete' };

class Refusal extends Error {
  constructor(code, reason, message, details) {
    super(message);
    this.code = code;
    this.status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' };
    Object.assign(this.status, { message, reason, details, code });
  }
}

const group = 'coordination.k8s.io';
const named = (name) => `leases.${group} "${name}"`;
const notFound = (name) =>
  new Refusal(404, 'NotFound', `${named(name)} not found`, { name, group, kind: 'leases' });
const invalid = (name, text) =>
  new Refusal(422, 'Invalid', `Lease.${group} "${name}" is invalid: ${text}`, {
    ...{ name, group, kind: 'Lease' },
    causes: [{ reason: 'FieldValueInvalid', message: text }],
  });
/** Of a patch that cannot be applied, whatever the reason. */
const unfit = () =>
  new Refusal(422, 'Invalid', 'the server rejected our request due to an error in our request', {});

/** The parent of what a pointer of RFC 6901 names, and its key there. */
function find(object, pointer) {
  const keys = pointer.split('/').slice(1);
  const last = keys.pop();
  const decode = (key) => key.replaceAll('~1', '/').replaceAll('~0', '~');
  let parent = object;
  for (const key of keys) {
    parent = parent?.[decode(key)];
    if (parent === null || typeof parent !== 'object') throw unfit();
  }
  return [parent, decode(last)];
}

/** Applies a JSON Patch to a copy: all of it or nothing. */
function patched(object, patch) {
  if (!Array.isArray(patch)) throw new Refusal(400, 'BadRequest', 'error decoding patch');
  const copy = structuredClone(object);
  for (const { op, path, value } of patch) {
    const [parent, key] = find(copy, path);
    if (op === 'test' && !isDeepStrictEqual(parent[key], value)) throw unfit();
    if (op === 'replace' && !Object.hasOwn(parent, key)) throw unfit();
    if (op === 'replace' || op === 'add') parent[key] = value;
    else if (op !== 'test') throw new Refusal(400, 'BadRequest', `Unexpected kind: ${op}`);
  }
  return copy;
}

/** The Leases of a server, kept in a file if there is a folder. */
class Leases {
  #file;
  #objects = new Map();
  #version = 0;

  constructor(folder) {
    this.#file = folder && join(folder, 'leases.json');
    if (!folder || !existsSync(this.#file)) return;
    this.#objects = new Map(JSON.parse(readFileSync(this.#file, 'utf8')));
    this.#version = Date.now();
  }

  #keep() {
    if (!this.#file) return;
    writeFileSync(`${this.#file}.new`, JSON.stringify([...this.#objects]));
    renameSync(`${this.#file}.new`, this.#file);
  }

  #put(object) {
    const { name, annotations = {} } = object.metadata;
    if (typeof name !== 'string' || !NAME.test(name)) throw invalid(name, 'metadata.name');
    const texts = Object.values(annotations);
    if (texts.some((text) => typeof text !== 'string')) throw invalid(name, 'annotations');
    const bytes = Buffer.byteLength([...Object.keys(annotations), ...texts].join(''));
    if (bytes > MOST_OF_ANNOTATIONS) throw invalid(name, 'metadata.annotations: Too long');
    object.metadata.resourceVersion = String(++this.#version);
    this.#objects.set(name, object);
    this.#keep();
    return object;
  }

  get(name) {
    const found = this.#objects.get(name);
    if (found === undefined) throw notFound(name);
    return found;
  }

  create(object, namespace) {
    const { name } = object.metadata ?? {};
    if (this.#objects.has(name)) {
      const details = { name, group, kind: 'leases' };
      throw new Refusal(409, 'AlreadyExists', `${named(name)} already exists`, details);
    }
    const creationTimestamp = `${new Date().toISOString().slice(0, 19)}Z`;
    const metadata = { ...object.metadata, namespace, uid: randomUUID(), creationTimestamp };
    const type = { apiVersion: `${group}/v1`, kind: 'Lease' };
    return this.#put({ ...type, spec: {}, ...object, metadata });
  }

  patch(name, patch) {
    return this.#put(patched(this.get(name), patch));
  }

  delete(name) {
    this.get(name);
    this.#objects.delete(name);
    this.#keep();
    return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' };
  }

  list(query) {
    const [label, value] = query.get('labelSelector')?.split('=') ?? [];
    const isWanted = ({ metadata }) => label === undefined || metadata.labels?.[label] === value;
    const all = [...this.#objects.values()].filter(isWanted);
    const [from, limit] = [Number(query.get('continue') ?? 0), Number(query.get('limit') ?? 1e9)];
    const items = all.slice(from, from + limit);
    const more = from + limit < all.length ? { continue: String(from + limit) } : {};
    return { kind: 'LeaseList', apiVersion: `${group}/v1`, metadata: more, items };
  }
}

/**
 * What answers requests.
 * @param leases a `Leases`
 * @param isToken whether a token is valid
 * @param rights verbs
 * @param namespace the only one of this Kubernetes
 */
function handler({ leases, isToken, rights = RIGHTS, namespace = 'ids' }) {
  const answer = (request, body) => {
    const [, token] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (!isToken(token)) throw new Refusal(401, 'Unauthorized', 'Unauthorized');
    const { pathname, searchParams } = new URL(request.url, 'https://host');
    const [, wanted, name] = LEASES.exec(pathname) ?? [];
    if (wanted === undefined) {
      throw new Refusal(404, 'NotFound', 'the server could not find the requested resource', {});
    }
    const verb = VERBS[request.method] ?? (name === undefined ? 'list' : 'get');
    if (!rights.includes(verb) || wanted !== namespace) {
      const text = `leases.${group}${name ? ` "${name}"` : ''} is forbidden: User "${USER}" cannot ${verb} resource "leases" in API group "${group}" in the namespace "${wanted}"`;
      throw new Refusal(403, 'Forbidden', text, { name, group, kind: 'leases' });
    }
    const type = request.headers['content-type'];
    if (verb === 'patch' && type !== 'application/json-patch+json') {
      throw new Refusal(415, 'UnsupportedMediaType', `the body of the request was in ${type}`);
    }
    if (verb === 'create') return [201, leases.create(JSON.parse(body), namespace)];
    if (verb === 'patch') return [200, leases.patch(name, JSON.parse(body))];
    if (verb === 'list') return [200, leases.list(searchParams)];
    return [200, leases[verb](name)];
  };
  return async (request, response) => {
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    let reply;
    try {
      reply = answer(request, body);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      reply = [refusal.code, refusal.status];
    }
    response.writeHead(reply[0], { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(reply[1]));
  };
}

if (require.main === module) {
  const [, , folder, port] = process.argv;
  const at = (name) => join(folder, name);
  const isToken = (token) => token === readFileSync(at('token'), 'utf8').trim();
  const own = { cert: readFileSync(at('certificate')), key: readFileSync(at('key')) };
  https
    .createServer(own, handler({ leases: new Leases(folder), isToken }))
    .listen(Number(port), '127.0.0.1');
}

module.exports = { Leases, handler };
