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

/** Of how many worker IDs that were never used one is picked. */
const MOST_UNUSED = 64;

/**
 * One of the lowest worker IDs that were never used, at random: whoever comes at the same time most
 * likely gets another. undefined if there are none left.
 */
function pickUnused(workerIds, isUsed) {
  const unused = [];
  for (let id = 0; id < workerIds && unused.length < MOST_UNUSED; id++) {
    if (!isUsed(id)) unused.push(id);
  }
  return unused[Math.floor(Math.random() * unused.length)];
}

module.exports = { checkClient, pickUnused, readNamespace };
