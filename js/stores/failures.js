'use strict';
// Errors of stores, by phase: no address, no listener, TLS, login, another protocol, timeout, a failed call.
// Each names the server, says what to do, and quotes the client. None contains a password or a full URL.

const { noteClient } = require('../messages/causes.js');
const { SnowFlakeError, describe, faultError, fromCaller } = require('../messages/errors.js');
const { lackOf } = require('../messages/faults.js');
const { CallTimeout } = require('../runtime/limits.js');
const { ownOf, propertyOf, readAll } = require('../ids/properties.js');

/**
 * A kind of failure. Codes and messages are those of Node, clients and servers.
 * @typedef {object} Phase
 * @property {RegExp} [codes]
 * @property {RegExp} [messages]
 * @property {boolean} [isFinal] whether a later try meets it again, unless somebody changes a setting
 * @property {(server: string, code: string) => string} say
 */

/** What was thrown: an error, as a rule. @typedef {{ message?: unknown } | null | undefined} Thrown */

/** A user without a right. @type {Phase} */
const DENIED = {
  codes: /^(42501|ER_(TABLE|COLUMN|DB)ACCESS_DENIED_ERROR)$/,
  messages:
    /^NOPERM|^Kubernetes returned 403|^Access Denied(?! for)|does not have storage\.|permission denied|not authorized|ACL failure in script|user executing the script/i,
  say: (server) => `${server} denied access: grant this user the rights`,
};

/** What to do where nobody answers. */
const SILENT = 'check that it runs, that this is its port, and that no firewall drops packets';

/** The first match decides. @type {Phase[]} */
const PHASES = [
  {
    codes: /^E[MN]FILE$/,
    say: (server, code) =>
      `Cannot connect to ${server}: too many files are open. ${lackOf({ code })}`,
  },
  {
    codes: /^(ENOTFOUND|EAI_\w+|ENODATA)$/,
    messages: /failed to lookup address information/,
    say: (server) =>
      `Cannot find the host of ${server}: check its name and the DNS settings of this host`,
  },
  {
    codes: /^ERR_OSSL_/,
    messages: /^ZooKeeper: (cannot use|invalid client private key)/,
    isFinal: true,
    say: (server) =>
      `Cannot use the certificate or key for ${server}: check that they are in PEM, belong together, and have this passphrase`,
  },
  {
    codes: /^(ERR_TLS|ERR_SSL|CERT_|EPROTO$|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HANDSHAKE_)/,
    messages:
      /SSL connection|SSL\/TLS|secure TLS|insecure transport|wrong version number|no encryption|SSL off|to an HTTPS server|CommonName of client|TLS handshake|received fatal alert/i,
    say: (server) =>
      `Cannot agree on TLS with ${server}: check that the URL and the server both use TLS or both do not, that this process trusts the server's certificate (NODE_EXTRA_CA_CERTS), and that the server accepts the client certificate, if it requires one`,
  },
  {
    // `pg` takes it from USER, which containers lack.
    messages: /^no PostgreSQL user name/,
    isFinal: true,
    say: (server) =>
      `${server} was given no user: name one in the URL before the host, as in app@host, or set PGUSER`,
  },
  {
    // Not final: an API server may not know yet that the account exists.
    messages: /^Kubernetes returned 401/,
    say: (server) =>
      `${server} refused the token: check that it is one of this cluster and has not expired, and that its service account exists`,
  },
  {
    codes: /^(28P01|28000|ER_ACCESS_DENIED_(NO_PASSWORD_)?ERROR)$/,
    messages:
      /^(WRONGPASS|NOAUTH)|invalid password|without any password|SASL|SCRAM|authentication failed|invalid auth token|user name is empty|requires authentication/i,
    isFinal: true,
    say: (server) => `${server} refused the login: check user and password`,
  },
  {
    messages:
      /^The (security token|provided token|request signature|AWS Access Key)|credentials from any providers|^(Credential|Token) is/i,
    isFinal: true,
    say: (server) =>
      `${server} refused the keys, or the AWS SDK found none: in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in the profile AWS_PROFILE, or in the role of the function, task, pod or machine`,
  },
  {
    messages: /^Could not load the default credentials/,
    isFinal: true,
    say: (server) =>
      `The client of ${server} found no credentials: in the file of GOOGLE_APPLICATION_CREDENTIALS, or in the service account of the function, pod or machine`,
  },
  {
    messages: /^Region is missing/,
    isFinal: true,
    say: (server) => `${server} has no Region: add the option region to the URL, or set AWS_REGION`,
  },
  {
    codes: /^(3D000|3F000|ER_BAD_DB_ERROR)$/,
    messages: /DB index is out of range|invalid DB index/i,
    say: (server) => `${server} has no such database or schema: create it, or correct its name`,
  },
  DENIED,
  {
    codes: /^(25006|ER_OPTION_PREVENTS_STATEMENT|ER_READ_ONLY_MODE)$/,
    messages: /^READONLY|read-only|\bnot (writable )?primary\b/i,
    say: (server) => `${server} is read-only: use the address of the primary`,
  },
  {
    // With an error of a connection, that is its cause.
    messages: /^server selection timed out/i,
    say: (server) =>
      `${server} showed no primary: check that it runs and has one, that the URL uses TLS if the port does, and that this host can reach its members at the addresses in rs.conf()`,
  },
  {
    messages: /replica set member to use read ?concern|\blinearizable\b/i,
    isFinal: true,
    say: (server) =>
      `${server} has no linearizable reads: start mongod with --replSet and run rs.initiate() once, also for one member`,
  },
  {
    // etcd keeps each version of a record until it compacts.
    messages: /database space exceeded/,
    say: (server) =>
      `${server} is full of old versions: run "etcdctl compact" with its revision, "etcdctl defrag" and "etcdctl alarm disarm", and start it with --auto-compaction-retention=1h`,
  },
  {
    messages: /^(MOVED|ASK) \d/,
    say: (server) =>
      `${server} is one node of a cluster: add ?cluster=true to its URL, or pass a client of all nodes, as redis(new Cluster([...])) of ioredis`,
  },
  {
    codes: /^(53300|ER_(USER_LIMIT_REACHED|CON_COUNT_ERROR|TOO_MANY_USER_CONNECTIONS))$/,
    messages: /max number of clients|too many (clients|connections)/i,
    say: (server) => `${server} accepts no more connections: end some, or raise the server's limit`,
  },
  {
    codes: /^(HPE_\w+|PROTOCOL_\w*(PACKET|SEQUENCE)\w*|ER_MALFORMED_PACKET)$/,
    messages:
      /protocol error|unexpected (token|end of JSON)|not valid JSON|unmarshal|unknown message code|invalid (bson|message) size|invalid bson/i,
    say: (server) => `The reply is not in the protocol of ${server}: check that this is its port`,
  },
  {
    codes:
      /^(ECONNREFUSED|E(HOST|NET)(UNREACH|DOWN)|ETIMEDOUT|EADDRNOTAVAIL|ENOENT|UND_ERR_CONNECT_TIMEOUT|NR_CLOSED)$/,
    messages:
      /max retries per request|connect(ion)? time-?out|timeout expired|client is closed|no available hosts|ConnectionRefused|(Host|Network)Unreachable|TimedOut/i,
    say: (server) => `Cannot reach ${server}: check that it runs and that this host can reach it`,
  },
  {
    codes: /^(ECONNRESET|EPIPE|PROTOCOL_CONNECTION_LOST|UND_ERR_SOCKET)$/,
    messages:
      /connection (terminated|is closed|lost|closed|\S+ to \S+ closed)|socket closed|other side closed|connection to server has lost|ConnectionReset/i,
    say: (server) =>
      `${server} closed the connection: check that it runs, that this is its port, and that the URL uses TLS if the port does`,
  },
  {
    // ZooKeeper's client waits for 2 s.
    messages: /no response from connection/,
    say: (server) => `${server} did not answer: ${SILENT}`,
  },
];

/** @type {Record<string, string>} */
const ACTIONS = {
  now: 'read its clock',
  read: 'read a record',
  write: 'write a record',
  assign: 'assign a worker ID',
};

/**
 * A call of a client, whose errors are noted as such. Ours are not.
 * @template {unknown[]} Values
 * @template Reply
 * @param {(...values: Values) => Promise<Reply>} call
 * @returns {(...values: Values) => Promise<Reply>}
 */
function ofClient(call) {
  return async (...values) => {
    try {
      return await call(...values);
    } catch (failure) {
      throw failure instanceof SnowFlakeError ? failure : noteClient(failure);
    }
  };
}

const isObject = /** @type {(value: unknown) => value is object} */ (
  (value) => Object(value) === value
);

/** An error may be its own cause. */
const MOST_CAUSES = 9;

/** The wrapped error with the code and the message. @param {unknown} failure */
function rootOf(failure) {
  let root = /** @type {Thrown} */ (failure);
  for (let n = 0; n < MOST_CAUSES; n++) {
    // An AggregateError of connecting to each address of a host; its own message may be empty.
    if (root === null || root === undefined || Object(root) !== root) return root;
    const { errors, code, cause } = readAll(root, ['errors', 'code', 'cause']);
    if (Array.isArray(errors) && errors.length > 0) return errors[0];
    if (code !== undefined || !(cause instanceof Error)) return root;
    root = cause;
  }
  return root;
}

/** The failure to create the table of a store, which is missing. */
class TableFailure extends Error {
  /**
   * @param {string} table
   * @param {unknown} cause
   */
  constructor(table, cause) {
    super(`cannot create the table ${table}`, { cause });
    this.table = table;
  }
}

/**
 * The error for a call that failed.
 * @param {string} server 'PostgreSQL at db:5432', or the store's name
 * @param {string} call
 * @param {unknown} failure
 * @param {boolean} [isBoundByTtl] whether the call had less time than `callTimeout`
 */
function storeFailure(server, call, failure, isBoundByTtl = false) {
  try {
    return wordFailure(server, call, failure, isBoundByTtl);
  } catch {
    // Of an application's own store, whose error cannot be read.
    const what = `${server} failed to ${ACTIONS[call] ?? call}, with an error that cannot be read`;
    return new SnowFlakeError('ERR_SNOWFLAKE_STORE', what);
  }
}

/**
 * @param {string} server
 * @param {string} call
 * @param {unknown} failure
 * @param {boolean} isBoundByTtl
 */
function wordFailure(server, call, failure, isBoundByTtl) {
  if (failure instanceof SnowFlakeError) return failure;
  const root = rootOf(failure);
  const phase = root instanceof CallTimeout ? undefined : phaseOf(root);
  const [text, ...quote] = explain(server, call, root, { phase, failure, isBoundByTtl });
  const code = codeOf(root);
  const hasCode = typeof code === 'string' && /^[A-Z0-9_]{3,40}$/.test(code);
  const message = hasCode ? text.replace(': ', ` (${code}): `) : text;
  const error = new SnowFlakeError('ERR_SNOWFLAKE_STORE', [message, ...quote].join('. '), {
    cause: failure,
  });
  if (phase !== undefined && ownOf(phase).isFinal) finals.add(error);
  return fromCaller(error, storeFailure);
}

/**
 * The code of an error; undefined if it has none, or is none.
 * @param {unknown} failure
 */
const codeOf = (failure) => (isObject(failure) ? propertyOf(failure, 'code') : undefined);

/** The most characters of a code or message that PHASES look at. */
const MOST_READ = 1000;

/** @param {unknown} text */
const startOf = (text) => (typeof text === 'string' ? text.slice(0, MOST_READ) : '');

/**
 * The phase in which a client failed with this error; undefined if it is not known.
 * @param {Thrown} root
 */
function phaseOf(root) {
  const [code, message] = [startOf(codeOf(root)), startOf(root?.message)];
  return PHASES.find((each) => {
    const { codes, messages } = ownOf(each);
    return codes?.test(code) || messages?.test(message);
  });
}

/**
 * The text of an error, and the client's own where it says more.
 * @param {string} server
 * @param {string} call
 * @param {Thrown} root
 * @param {{ phase: Phase | undefined, failure: unknown, isBoundByTtl: boolean }} more
 */
function explain(server, call, root, { phase, failure, isBoundByTtl }) {
  if (root instanceof CallTimeout) {
    const slow = isBoundByTtl ? '. If its calls are slow, set a longer ttl' : '';
    return [`${server} did not answer within ${root.ms} ms: ${SILENT}${slow}`];
  }
  const text = describe(root);
  if (phase === undefined) return [`${server} failed to ${ACTIONS[call] ?? call}: ${text}`];
  const said =
    phase === DENIED && failure instanceof TableFailure
      ? `${server} has no table ${failure.table}, and this user may not create it: have its owner run what "npx snowdrift namespace tables --schema NAME" prints for that schema, and grant this user the rights`
      : phase.say(server, startOf(codeOf(root)));
  return [said, `Its client says: ${text}`];
}

/** The errors of records of another format. */
const conflicts = new WeakSet();

/**
 * @param {string} store
 * @param {string} evidence a record of another format that a reader can look up
 */
function formatConflict(store, evidence) {
  const conflict = faultError({ kind: 'store-records', store, evidence });
  conflicts.add(conflict);
  return conflict;
}

/** @param {unknown} failure */
const isFormatConflict = (failure) => isObject(failure) && conflicts.has(failure);

/** Errors that a later try meets again, unless somebody changes a setting. */
const finals = new WeakSet();

/** @param {unknown} failure */
const isFinal = (failure) =>
  isObject(failure) && (finals.has(failure) || codeOf(failure) === 'ERR_SNOWFLAKE_CONFIG');

module.exports = {
  TableFailure,
  formatConflict,
  isFinal,
  isFormatConflict,
  ofClient,
  storeFailure,
};
