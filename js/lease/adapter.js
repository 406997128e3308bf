'use strict';
// What all adapters read the same way.

const { configError, shown } = require('../errors.js');
const { propertiesOf } = require('../options.js');

/** The namespace of an adapter's options: slots of different namespaces have nothing in common. */
function readNamespace(options = {}) {
  const { namespace = 'default' } = propertiesOf(
    options,
    'options of the store',
    ['namespace'],
    configError,
  );
  if (typeof namespace !== 'string' || !/^[A-Za-z0-9_.-]{1,64}$/.test(namespace)) {
    throw configError(
      `namespace must be 1 to 64 letters, digits, '_', '.' or '-'; it is ${shown(namespace)}`,
    );
  }
  return namespace;
}

/** That a client is what the adapter can use. */
function checkClient(client, method, what) {
  if (client === null || typeof client !== 'object' || typeof client[method] !== 'function') {
    throw configError(`${what}; this is ${shown(client)}`);
  }
  return client;
}

module.exports = { checkClient, readNamespace };
