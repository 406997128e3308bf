'use strict';
// Certificates of clients and servers, by openssl.

const { execFileSync } = require('node:child_process');
const { writeFileSync } = require('node:fs');
const { join } = require('node:path');

const openssl = (...args) => execFileSync('openssl', args, { stdio: 'pipe' });

/** Makes a CA in a folder. Returns the path of its certificate, and what issues one to a client. */
function createAuthority(folder, name) {
  const [certificate, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  const fresh = ['-newkey', 'rsa:2048', '-nodes', '-days', '2'];
  openssl('req', '-x509', ...fresh, '-subj', `/CN=${name}`, '-keyout', key, '-out', certificate);
  return {
    certificate,
    /**
     * @param subject etcd's gateway takes no common name
     * @param names of a server, such as 'IP:127.0.0.1'
     * @returns the paths of a certificate and its key
     */
    issue(client, subject = `/O=${client}`, names = undefined) {
      const paths = {
        cert: join(folder, `${client}-by-${name}.pem`),
        key: join(folder, `${client}-by-${name}.key`),
      };
      const request = `${paths.key}.csr`;
      const extensions = `${paths.key}.ext`;
      const more = names === undefined ? '' : `subjectAltName=${names}\n`;
      writeFileSync(extensions, `basicConstraints=CA:FALSE\n${more}`);
      openssl('req', ...fresh, '-subj', subject, '-keyout', paths.key, '-out', request);
      openssl(
        ...['x509', '-req', '-in', request, '-CA', certificate, '-CAkey', key, '-CAcreateserial'],
        ...['-extfile', extensions, '-days', '2', '-out', paths.cert],
      );
      return paths;
    },
  };
}

module.exports = { createAuthority };
