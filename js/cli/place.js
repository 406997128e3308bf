'use strict';
// Which store a command is about: a URL, or the one of the environment, where a password is not seen by
// others that list processes.

const { fileURLToPath } = require('node:url');

const { configError } = require('../errors.js');
const { isEngine, unknownEngine } = require('../lease/connect.js');

const URL_HELP = `  URL                   postgres://..., mysql://..., redis://..., etcd://..., zookeeper://...; with
                        ?namespace=NAME for another than 'default'. Without a URL, the environment
                        variable SNOWDRIFT_LEASE: nobody who lists processes sees its password`;

/** @returns the URL of a directory or of a store on the network. No message shows more than its scheme. */
function placeOf(name, positionals, usage) {
  if (positionals.length > 1) throw usage(`${name} takes one URL, not ${positionals.length}`);
  const [text = process.env.SNOWDRIFT_LEASE] = positionals;
  if (text === undefined) {
    throw usage(
      `${name} needs a URL, such as snowdrift ${name} file:///var/lib/app/ids, or the environment variable SNOWDRIFT_LEASE`,
    );
  }
  let url;
  try {
    url = new URL(text);
  } catch {
    throw configError(`${name} needs a URL, such as file:///var/lib/app/ids or postgres://...`);
  }
  if (!isEngine(url) && url.protocol !== 'file:') throw unknownEngine(`${url.protocol}//...`);
  return url;
}

/** The directory of a file: URL. */
function directoryOf(url) {
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw configError(
      'the URL must be a file: URL with an absolute path, such as file:///var/lib/app/ids',
      {
        cause,
      },
    );
  }
}

module.exports = { URL_HELP, directoryOf, placeOf };
