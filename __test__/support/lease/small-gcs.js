'use strict';
// A small server of Google Cloud Storage's JSON API, as its documentation says of uploads with ifGenerationMatch: one thread, so
// that a condition and its write are one step. It checks no token, and keeps objects as files: the generation and the body.
//
//   node __test__/support/lease/small-gcs.js PORT FOLDER

const { readFileSync, readdirSync, renameSync, rmSync, writeFileSync } = require('node:fs');
const { createServer } = require('node:http');
const { join } = require('node:path');

const [port, folder] = process.argv.slice(2);

const pathOf = (name) => join(folder, `object-${encodeURIComponent(name)}`);

function find(name) {
  try {
    const [, generation, body] = /^(\d+)\n(.*)$/s.exec(readFileSync(pathOf(name), 'utf8'));
    return { generation, body };
  } catch {
    return undefined;
  }
}

const names = () =>
  readdirSync(folder)
    .filter((file) => file.startsWith('object-') && !file.endsWith('.new'))
    .map((file) => decodeURIComponent(file.slice('object-'.length)));

/** Grows, also across objects and restarts. */
let last = 0;
function nextGeneration(found) {
  last = Math.max(Date.now() * 1000, last + 1, Number(found?.generation ?? 0) + 1);
  return String(last);
}

const json = (status, value) => ({ status, type: 'application/json', body: JSON.stringify(value) });
const error = (code, message) => json(code, { error: { code, message, errors: [{ message }] } });

/** The last part of multipart/related. */
function contentOf(type, body) {
  const [, boundary] = /boundary=(.*)$/.exec(type);
  const part = body.split(`--${boundary}`)[2];
  return part.slice(part.indexOf('\r\n\r\n') + 4, -2);
}

function upload(query, type, body) {
  const name = query.get('name');
  const found = find(name);
  const condition = query.get('ifGenerationMatch');
  if (condition !== null && condition !== (found?.generation ?? '0')) {
    return error(412, 'At least one of the pre-conditions you specified did not hold.');
  }
  const generation = nextGeneration(found);
  const path = pathOf(name);
  writeFileSync(`${path}.new`, `${generation}\n${contentOf(type, body)}`);
  renameSync(`${path}.new`, path);
  return json(200, { kind: 'storage#object', name, generation });
}

function list(query) {
  const prefix = query.get('prefix') ?? '';
  const below = names().filter((name) => name.startsWith(prefix));
  const first = below.map((name) => name.slice(prefix.length).split('/')[0]);
  return json(200, { prefixes: [...new Set(first)].map((name) => `${prefix}${name}/`) });
}

function answer({ method, url, headers }, body) {
  const { pathname, searchParams } = new URL(url, 'http://small');
  const [, isUpload, bucket, path = ''] =
    /^(\/upload)?\/storage\/v1\/b\/([^/]+)\/o\/?(.*)$/.exec(pathname) ?? [];
  if (bucket !== 'ids') return error(404, 'The specified bucket does not exist.');
  if (isUpload) return upload(searchParams, headers['content-type'], body);
  if (path === '') return list(searchParams);
  const name = decodeURIComponent(path);
  if (method === 'DELETE') {
    rmSync(pathOf(name), { force: true });
    return { status: 204 };
  }
  return find(name) ?? { status: 404, body: `No such object: ${bucket}/${name}` };
}

const server = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const reply = answer(request, Buffer.concat(parts).toString());
  const { status = 200, type = 'text/plain', generation, body = '' } = reply;
  if (generation !== undefined) response.setHeader('X-Goog-Generation', generation);
  response.setHeader('Content-Type', type);
  response.writeHead(status).end(body);
});
// The client may use a connection as it ends.
server.keepAliveTimeout = 0;
server.listen(Number(port), '127.0.0.1');
