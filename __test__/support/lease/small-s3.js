'use strict';
// A small server of S3's protocol, as its documentation says of PutObject with If-None-Match and If-Match: one thread, so that
// a condition and its write are one step. It checks no signature, and keeps objects as files.
//
//   node __test__/support/lease/small-s3.js PORT FOLDER

const { createHash } = require('node:crypto');
const { readFileSync, readdirSync, renameSync, rmSync, writeFileSync } = require('node:fs');
const { createServer } = require('node:http');
const { join } = require('node:path');

const [port, folder] = process.argv.slice(2);

const pathOf = (key) => join(folder, `object-${encodeURIComponent(key)}`);

function find(key) {
  try {
    const body = readFileSync(pathOf(key));
    return { body, etag: `"${createHash('md5').update(body).digest('hex')}"` };
  } catch {
    return undefined;
  }
}

function put(key, body) {
  const path = pathOf(key);
  writeFileSync(`${path}.new`, body);
  renameSync(`${path}.new`, path);
}

const keys = () =>
  readdirSync(folder)
    .filter((name) => name.startsWith('object-') && !name.endsWith('.new'))
    .map((name) => decodeURIComponent(name.slice('object-'.length)));

const error = (status, code) => ({ status, body: `<Error><Code>${code}</Code></Error>` });

/** The names below a prefix, up to a slash. */
function list(bucket, prefix) {
  const below = keys().filter((key) => key.startsWith(`${bucket}/${prefix}`));
  const names = below.map((key) => key.slice(bucket.length + 1 + prefix.length).split('/')[0]);
  const prefixes = [...new Set(names)].map(
    (name) => `<CommonPrefixes><Prefix>${prefix}${name}/</Prefix></CommonPrefixes>`,
  );
  return { body: `<ListBucketResult>${prefixes.join('')}</ListBucketResult>` };
}

function answer({ method, url, headers }, body) {
  const { pathname, searchParams } = new URL(url, 'http://small');
  const key = decodeURIComponent(pathname.slice(1)).replace(/[/]$/, '');
  if (!key.includes('/')) {
    return method === 'GET' ? list(key, searchParams.get('prefix') ?? '') : {};
  }
  const found = find(key);
  if (method === 'DELETE') {
    rmSync(pathOf(key), { force: true });
    return { status: 204 };
  }
  if (method === 'PUT') {
    const { 'if-match': match, 'if-none-match': none } = headers;
    if (none === '*' && found !== undefined) return error(412, 'PreconditionFailed');
    if (match !== undefined && found === undefined) return error(404, 'NoSuchKey');
    if (match !== undefined && match !== found.etag) return error(412, 'PreconditionFailed');
    put(key, body);
    return { etag: find(key).etag };
  }
  return found ?? error(404, 'NoSuchKey');
}

createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const { status = 200, etag, body = '' } = answer(request, Buffer.concat(parts));
  if (etag !== undefined) response.setHeader('ETag', etag);
  response.writeHead(status).end(body);
}).listen(Number(port), '127.0.0.1');
