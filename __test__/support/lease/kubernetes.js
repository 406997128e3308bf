'use strict';
// An API server of Kubernetes for tests: the stand-in of kubernetes-server.js or, where KUBE_APISERVER is the path of a
// kube-apiserver, that one on an etcd. The token of its URL has the rights of examples/kubernetes-rights.yaml.

const { execFileSync } = require('node:child_process');
const { readFileSync, writeFileSync } = require('node:fs');
const https = require('node:https');
const { join } = require('node:path');

const { parseAllDocuments } = require('yaml');

const isReal = process.env.KUBE_APISERVER !== undefined;
const ADMIN = 'token-of-an-operator';
/** Of the service account that the file names. */
const USER = 'system:serviceaccount:ids:web';
const RIGHTS = join(__dirname, '../../../examples/kubernetes-rights.yaml');

/** What an operator applies. */
const manifests = () => parseAllDocuments(readFileSync(RIGHTS, 'utf8')).map((one) => one.toJSON());

function configure(folder) {
  const at = (name) => join(folder, name);
  const names = 'subjectAltName=IP:127.0.0.1,DNS:127.1';
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=snowdrift'],
      ...['-addext', names, '-keyout', at('key'), '-out', at('certificate')],
    ],
    { stdio: 'pipe' },
  );
  writeFileSync(at('token'), 'token-of-a-pod\n');
  const admin = `${ADMIN},operator,1,"system:masters"`;
  writeFileSync(at('tokens.csv'), `${admin}\ntoken-of-a-pod,${USER},2,""\n`);
}

const urlOf = (port, folder) =>
  `kubernetes://127.0.0.1:${port}/ids?tokenFile=${folder}/token&ca=${folder}/certificate`;

/** A request of an operator. Returns the status and the text of the reply. */
async function ask(url, method, path, body) {
  const { host, searchParams } = new URL(url);
  const token = isReal ? ADMIN : readFileSync(searchParams.get('tokenFile'), 'utf8').trim();
  const request = https.request(`https://${host}${path}`, {
    ...{ method, ca: readFileSync(searchParams.get('ca')) },
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
  });
  const response = await new Promise((resolve, reject) => {
    request.on('response', resolve).on('error', reject);
    request.end(body && JSON.stringify(body));
  });
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += part;
  return { status: response.statusCode, text };
}

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/ids/leases';
const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/ids';
const PATHS = {
  ServiceAccount: '/api/v1/namespaces/ids/serviceaccounts',
  Role: `${RBAC}/roles`,
  RoleBinding: `${RBAC}/rolebindings`,
};

/** Grants the rights. A started server has them already. */
async function grant(url) {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ids' } };
  await ask(url, 'POST', '/api/v1/namespaces', namespace);
  for (const one of manifests()) await ask(url, 'POST', PATHS[one.kind], one);
}

/** Deletes Leases of a namespace of snowdrift, by the end of their names. */
async function deleteLeases(url, isWanted) {
  const { text } = await ask(url, 'GET', LEASES);
  const names = JSON.parse(text).items.map(({ metadata }) => metadata.name);
  for (const name of names.filter(isWanted)) await ask(url, 'DELETE', `${LEASES}/${name}`);
}

/** Its entry in ENGINES. `serves` tells whether a server answers. */
const engineOf = (serves) => ({
  isStandIn: true,
  programs: () => [isReal ? '/bin/sh' : process.execPath],
  configure,
  args: (folder, port, other) =>
    isReal
      ? [join(__dirname, 'kube-apiserver.sh'), process.env.KUBE_APISERVER, folder, port, other]
      : [join(__dirname, 'kubernetes-server.js'), folder, port],
  program: 0,
  url: urlOf,
  async isUp(url) {
    if (isReal) await grant(url).catch(() => {});
    return serves(url);
  },
});

module.exports = { ask, deleteLeases, engineOf, isReal };
