'use strict';
// Users and roles of an etcd server, as an operator makes them.

const { createClient } = require('../../../js/stores/etcd-client.js');

const ROOT = { user: 'root', password: 'of-root' };

const encode = (text) => Buffer.from(text).toString('base64');

/** The range of the keys with a prefix. */
const prefixed = (prefix) => ({
  key: encode(prefix),
  range_end: encode(
    prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1),
  ),
});

/**
 * Has a server ask for users. Each has a role of its own.
 * @param users by name: password and permissions, each [permType, prefix of keys]
 * @returns a client of root
 */
async function requireLogin(urls, users, { tls } = {}) {
  const anyone = createClient(urls, { tls });
  const call = (path, body = {}) => anyone.post(`/v3/auth/${path}`, body);
  for (const [name, { password, permissions }] of Object.entries(users)) {
    await call('user/add', { name, password });
    await call('role/add', { name });
    for (const [permType, prefix] of permissions) {
      await call('role/grant', { name, perm: { permType, ...prefixed(prefix) } });
    }
    await call('user/grant', { user: name, role: name });
  }
  await call('user/add', { name: ROOT.user, password: ROOT.password });
  await call('user/grant', { user: ROOT.user, role: 'root' });
  await call('enable');
  anyone.close();
  return createClient(urls, { ...ROOT, tls });
}

module.exports = { prefixed, requireLogin };
