'use strict';
// Words the failures of stores by phase: the host has no address, nobody listens, TLS fails, the login
// is refused, the protocol is another, no answer comes in time, a call fails. Each error names the
// server, says what to do, and quotes the client. None contains a password or a full URL.

const { SnowFlakeError, shown } = require('../errors.js');

/** A call without an answer. */
class NoAnswer extends Error {
  constructor(ms) {
    super(`no answer within ${ms} ms`);
    this.ms = ms;
  }
}

/** By phase, of which the first that matches holds: codes and messages of Node, clients and servers. */
const PHASES = [
  {
    codes: /^(ENOTFOUND|EAI_\w+|ENODATA)$/,
    say: (server) =>
      `Cannot find the host of ${server}: check its name and the DNS settings of this host`,
  },
  {
    codes: /^(ERR_TLS|ERR_SSL|CERT_|EPROTO$|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HANDSHAKE_)/,
    messages:
      /SSL connection|SSL\/TLS|secure TLS|insecure transport|wrong version number|no encryption|SSL off/i,
    say: (server) =>
      `Cannot agree on TLS with ${server}: check that the URL and the server both use TLS or both do not, and that this process trusts the server's certificate (NODE_EXTRA_CA_CERTS)`,
  },
  {
    codes: /^(28P01|28000|ER_ACCESS_DENIED_(NO_PASSWORD_)?ERROR)$/,
    messages:
      /^(WRONGPASS|NOAUTH)|invalid password|without any password|SASL|SCRAM|authentication failed|invalid auth token|user name is empty/i,
    say: (server) => `${server} refused the login: check user and password`,
  },
  {
    codes: /^(3D000|ER_BAD_DB_ERROR)$/,
    messages: /DB index is out of range|invalid DB index/i,
    say: (server) => `${server} has no such database: create it, or correct its name`,
  },
  {
    codes: /^(42501|ER_(TABLE|COLUMN|DB)ACCESS_DENIED_ERROR)$/,
    messages: /^NOPERM|permission denied/i,
    say: (server) => `${server} denied access: grant this user the rights`,
  },
  {
    codes: /^(25006|ER_OPTION_PREVENTS_STATEMENT|ER_READ_ONLY_MODE)$/,
    messages: /^READONLY|read-only/i,
    say: (server) => `${server} is read-only: use the address of the primary`,
  },
  {
    codes: /^(53300|ER_(USER_LIMIT_REACHED|CON_COUNT_ERROR|TOO_MANY_USER_CONNECTIONS))$/,
    messages: /max number of clients|too many (clients|connections)/i,
    say: (server) => `${server} accepts no more connections: end some, or raise the server's limit`,
  },
  {
    codes: /^(HPE_\w+|PROTOCOL_\w*(PACKET|SEQUENCE)\w*|ER_MALFORMED_PACKET)$/,
    messages:
      /protocol error|unexpected (token|end of JSON)|not valid JSON|unmarshal|unknown message code/i,
    say: (server) => `The answer is not in the protocol of ${server}: check that this is its port`,
  },
  {
    codes:
      /^(ECONNREFUSED|E(HOST|NET)(UNREACH|DOWN)|ETIMEDOUT|EADDRNOTAVAIL|ENOENT|UND_ERR_CONNECT_TIMEOUT|NR_CLOSED)$/,
    messages:
      /max retries per request|connect(ion)? time-?out|timeout expired|client is closed|no available hosts/i,
    say: (server) => `Cannot reach ${server}: check that it runs and that this host can reach it`,
  },
  {
    codes: /^(ECONNRESET|EPIPE|PROTOCOL_CONNECTION_LOST|UND_ERR_SOCKET)$/,
    messages: /connection (terminated|is closed|lost|closed)|socket closed|other side closed/i,
    say: (server) =>
      `${server} closed the connection: check that it runs and that this is its port`,
  },
];

/** What a call does. */
const DOING = {
  now: 'read its clock',
  open: 'open the namespace',
  raise: "raise the namespace's record",
  acquire: 'acquire a slot',
  renew: 'renew a slot',
  release: 'release a slot',
  slots: 'list its slots',
};

/** The error that says something: some wrap it. */
function rootOf(failure) {
  // Of Node's attempts at all addresses of a host; its own message may be empty.
  if (Array.isArray(failure?.errors) && failure.errors.length > 0) return failure.errors[0];
  if (failure?.code === undefined && failure?.cause instanceof Error) return rootOf(failure.cause);
  return failure;
}

/**
 * The error for a call that failed.
 * @param server what the store is called: 'PostgreSQL at db:5432', or its name
 */
function storeFailure(server, call, failure) {
  const root = rootOf(failure);
  const [said, ...hint] = wording(server, call, root);
  const code = typeof root?.code === 'string' && /^[A-Z0-9_]{3,40}$/.test(root.code);
  const message = code ? said.replace(': ', ` (${root.code}): `) : said;
  return new SnowFlakeError('ERR_SNOWFLAKE_STORE', [message, ...hint].join('. '), {
    cause: failure,
  });
}

function wording(server, call, root) {
  if (root instanceof NoAnswer) {
    return [
      `${server} did not answer within ${root.ms} ms: check that it runs, that this is its port, and that no firewall drops packets`,
    ];
  }
  const text = shown(root);
  const code = String(root?.code);
  const message = String(root?.message);
  const phase = PHASES.find(({ codes, messages }) => codes.test(code) || messages?.test(message));
  if (phase === undefined) return [`${server} failed to ${DOING[call] ?? call}: ${text}`];
  return [phase.say(server), `Its client says: ${text}`];
}

module.exports = { DOING, NoAnswer, storeFailure };
