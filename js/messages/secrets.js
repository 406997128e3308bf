'use strict';
// Removes secrets, and control characters of strangers, from all output: messages of errors (the constructor of
// SnowFlakeError) and their causes (causes.js), quoted values and errors of clients (describe() in errors.js), names of
// stores, warnings, and the output of the command.
//
// A secret is a password, a token or a key. Secrets of URLs and options are learned before a client gets them, since
// clients may quote them. A login in any URL is removed by its form. Users, databases, hosts and paths are shown.
//
// A stranger's text may have megabytes. It is cut before it is searched, and each search takes linear time.

const { printable } = require('../ids/shown.js');

const HIDDEN = '***';

/** The most characters of a stranger's text that are searched and shown. */
const MOST_SHOWN = 4000;

/** The most texts that are learned. Each secret has a few forms. */
const MOST_LEARNED = 2000;

const CREDENTIAL = /pass|pw|pfx|cred|secret|token|key|auth/i;
/** Options of a URL whose names look like secrets, but are none: paths of files, a prefix, a switch, and where users are. */
const NO_SECRETS = [
  ...['key', 'sslkey', 'tlsCertificateKeyFile', 'keyPrefix', 'insecureAuth', 'tokenFile'],
  ...['authSource', 'authMechanism'],
];

const SERVER = /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i;

/**
 * The search text or pattern of each secret, by its text: the text itself or, for a weak secret, a pattern.
 * @type {Map<string, string | RegExp>}
 */
const learned = new Map();
/**
 * The same, the longest first, since one secret may be a part of another.
 * @type {(string | RegExp)[]}
 */
let removals = [];
let longest = 0;

/**
 * A text with decoded percent escapes. Malformed ones stay.
 * @param {string} text
 */
function decode(text) {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}

/**
 * The forms in which a client may show a secret.
 * @param {string} part
 */
function formsOf(part) {
  const decoded = decode(part);
  const encoded = encodeURIComponent(decoded.replace(/[\ud800-\udfff]/gu, '\ufffd'));
  const lower = encoded.replace(/%../g, (code) => code.toLowerCase());
  const spaced = decode(part.replaceAll('+', ' '));
  const inForm = String(new URLSearchParams({ '': decoded })).slice(1);
  return [part, decoded, spaced, encoded, lower, inForm, JSON.stringify(decoded).slice(1, -1)];
}

/**
 * Whether a secret is weak: a word or a number that other texts have, too, such as "postgres", "my-app" or "1234".
 * @param {string} text
 */
function isWeak(text) {
  /** @type {(part: string) => boolean} */
  const isWord = (part) => /^([A-Z]?[a-z]*|[A-Z]*|\d*)$/.test(part);
  return text.length < 6 || (text.length < 16 && text.split(/[-_. ]/).every(isWord));
}

/**
 * The search text or pattern of a secret. A weak secret is removed only as a whole word, and not from a path.
 * @param {string} text
 */
function removalOf(text) {
  if (!isWeak(text)) return text;
  const literal = text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  return new RegExp(`(?<![\\w/\\\\.-])${literal}(?![\\w/\\\\-]|\\.\\w)`, 'g');
}

/** @param {string} secret */
function add(secret) {
  for (const form of formsOf(secret)) if (form !== '') learned.set(form, removalOf(form));
}

function sortLearned() {
  for (const [oldest] of learned) {
    if (learned.size <= MOST_LEARNED) break;
    learned.delete(oldest);
  }
  const all = [...learned].sort(([a], [b]) => b.length - a.length);
  longest = all[0]?.[0].length ?? 0;
  removals = all.map(([, removal]) => removal);
}

/**
 * Whether an option of a URL is a secret, by its name. It matches parts of names, since users misspell them.
 * @type {(name: string) => boolean}
 */
const isSecretOption = (name) => CREDENTIAL.test(name) && !NO_SECRETS.includes(name);

/**
 * Whether the user of a URL is a token.
 * @type {(url: Pick<URL, 'protocol' | 'username' | 'password'>) => boolean}
 */
const hasToken = ({ protocol, username, password }) =>
  password === '' && username !== '' && /^(redis|upstash|etcd|kubernetes)/.test(protocol);

/**
 * Learns the secrets of a URL before a client gets it.
 * @param {URL} url
 */
function learn(url) {
  const { username, password, hostname, pathname, search, hash } = url;
  const [user, secret] = [decode(username), decode(password)];
  // A weak password that is also the name of the user, the host or the database is not learned, since the name is
  // shown.
  const names = [user, hostname, ...pathname.split('/').map(decode)];
  if (!isWeak(secret) || !names.includes(secret)) add(password);
  if (password !== '') add(Buffer.from(`${user}:${secret}`).toString('base64'));
  if (hasToken(url)) add(username);
  for (const option of search.slice(1).split('&')) {
    const [name, ...parts] = option.split('=');
    const value = parts.join('=');
    if (isSecretOption(decode(name))) add(value);
    learnMembers(decode(value));
  }
  // Clients do not use a fragment. It may be the rest of a password.
  add(hash.slice(1));
  sortLearned();
}

/**
 * Learns the secrets in options that are a JSON object, or a list as 'AWS_SESSION_TOKEN:abc,SERVICE_NAME:x'.
 * @param {string} text
 */
function learnMembers(text) {
  if (!text.startsWith('{')) {
    for (const member of text.split(',')) {
      const [name, ...parts] = member.split(':');
      if (CREDENTIAL.test(name)) add(parts.join(':'));
    }
    return;
  }
  try {
    JSON.parse(text, (name, value) => {
      if (typeof value === 'string' && CREDENTIAL.test(name)) add(value);
      return value;
    });
  } catch {
    // The client will refuse it.
  }
}

/** @param {string} text */
function learnPassword(text) {
  if (learned.has(text)) return;
  add(text);
  sortLearned();
}

/**
 * Forgets a secret that is no longer valid, such as a token.
 * @param {string} text
 */
function forget(text) {
  for (const form of formsOf(text)) learned.delete(form);
  sortLearned();
}

/**
 * @param {string} text
 * @param {boolean} ofOthers whether the text is foreign. Weak secrets are not removed from the package's own texts, which may
 * have the same words
 */
function removeLearned(text, ofOthers) {
  let rest = text;
  for (const removal of removals) {
    if (ofOthers || typeof removal === 'string') rest = rest.replaceAll(removal, HIDDEN);
  }
  return rest;
}

/** The host of a file: URL, or the text after '//' in any other word. */
const LOGINS = /\bfile:\/\/([^/\s]*)|\/\/(\S*)/gi;

/**
 * Removes logins and options of URLs from a text, by their form.
 * @param {string} text
 * @param {boolean} [isCut] whether the text was cut, so that its last URL may be incomplete
 */
function removeLogins(text, isCut = false) {
  return text.replace(LOGINS, (found, fileHost, word, offset) => {
    const address = fileHost ?? word;
    const before = found.slice(0, found.length - address.length);
    if (isCut && offset + found.length === text.length) return before + HIDDEN;
    const at = address.lastIndexOf('@');
    // If '/', '?' or '#' is before '@', the text after it may be part of a password, too.
    if (address.slice(0, at + 1).search(/[/?#]/) >= 0) return before + HIDDEN;
    const shown = at < 0 ? address : HIDDEN + address.slice(at);
    const options = shown.indexOf('?');
    return before + (options < 0 ? shown : `${shown.slice(0, options)}?${HIDDEN}`);
  });
}

/**
 * A text of this package, without secrets.
 * @type {(text: string) => string}
 */
const redact = (text) => removeLogins(removeLearned(text, false));

/**
 * The start of a text, without learned secrets. A secret at the cut would be incomplete and stay, so this searches
 * further by the length of the longest secret, then drops that part.
 * @param {string} text
 * @param {number} most
 * @param {boolean} ofOthers
 */
function startOf(text, most, ofOthers) {
  const isCut = text.length > most + longest;
  if (!isCut) return { start: removeLearned(text, ofOthers), isCut };
  const read = removeLearned(text.slice(0, most + longest), ofOthers);
  return { start: read.slice(0, Math.max(0, read.length - longest)), isCut };
}

/**
 * The start of a text of a client, a server or the application, without secrets.
 * @param {string} text
 * @param {number} [most]
 */
function redactForeign(text, most = MOST_SHOWN) {
  const { start, isCut } = startOf(text, most, true);
  return removeLogins(start, isCut);
}

/**
 * The start of a stack's frames. Keeps weak secrets, since paths have the same words.
 * @type {(text: string) => string}
 */
const redactFrames = (text) => startOf(text, MOST_SHOWN, false).start;

/** Whether any secret is known. */
const knowsSecrets = () => learned.size > 0;

/**
 * A login in a URL, or a password in its options. Takes linear time: repetitions are bounded, or exclude the character
 * that starts them.
 */
const UNLEARNED = /\/\/[^/?#\s@]+@|[?&]\w{0,20}pass\w{0,20}=/i;

/**
 * Whether a complete text of the application shows no secret. Its URLs may have options, and '@' in a path.
 * @type {(text: string) => boolean}
 */
const showsNone = (text) => !UNLEARNED.test(text) && removeLearned(text, true) === text;

/**
 * Whether a URL has a password or a token.
 * @param {string} text
 */
function hasPassword(text) {
  try {
    const url = new URL(text);
    /** @type {(option: [string, string]) => boolean} */
    const isSecret = ([name, value]) => isSecretOption(name) && value !== '';
    return url.password !== '' || hasToken(url) || [...url.searchParams].some(isSecret);
  } catch {
    return text.includes('//') && text.lastIndexOf('@') > text.indexOf('//');
  }
}

/**
 * Whether a name that the application chose has a login or a password, by its form.
 * @type {(text: string) => boolean}
 */
const showsPassword = (text) => KEYWORD.test(text) || UNLEARNED.test(text) || hasPassword(text);

/**
 * A text of this package for output: one line, without secrets.
 * @type {(text: string) => string}
 */
const sanitize = (text) => printable(redact(text));

/**
 * A server's URL for output: scheme, host and port. Hides the host if it may be part of a password.
 * @param {string} text
 */
function shownUrl(text) {
  const [scheme] = /** @type {RegExpExecArray} */ (SERVER.exec(text));
  const rest = text.slice(scheme.length);
  const end = rest.search(/[/?#]|$/);
  const at = rest.lastIndexOf('@');
  if (at > end) return scheme + HIDDEN;
  const [, host, port] = /^(\[[^\]]*\]|[^:]*)(.*)$/s.exec(rest.slice(at + 1, end)) ?? ['', '', ''];
  // Also the ports of an ensemble: zk1:2181,zk2:2181.
  const isPort = /^(:\d{1,5}(,[^:,]+:\d{1,5})*)?$/.test(port);
  if (at >= 0) return `${scheme}${HIDDEN}@${host}${isPort ? port : ''}`;
  return scheme + (isPort ? host + port : HIDDEN);
}

/** The keyword of a secret in a connection string that is no URL, such as libpq's and Azure's, or in JSON. */
const KEYWORD = /(?:pass(?:word|wd)?|pwd|secret|token)(?:\s{0,3}=|["']\s{0,3}:)/i;

/**
 * A text without the user, password and options of a URL, valid or not. Takes linear time, since the text may have
 * megabytes.
 * @param {string} text
 */
function withoutLogin(text) {
  const at = text.lastIndexOf('@');
  const colon = text.indexOf(':');
  const slashes = text.indexOf('//');
  if (slashes < 0) {
    const isLogin = colon >= 0 && at > colon && !/[/\s]/.test(text.slice(0, colon));
    return isLogin ? `***${text.slice(at)}` : text;
  }
  const start = text.slice(0, slashes + 2);
  const options = text.indexOf('?');
  // If '?' is before '@', either may be part of the password.
  if (options >= 0 && at > options) return `${start}***`;
  const rest = at > slashes ? `***${text.slice(at)}` : text.slice(slashes + 2);
  return start + rest.replace(/\?.*/s, '?***');
}

/**
 * The start of an application's text, which may be a URL or another connection string, without its secrets.
 * @param {string} text
 */
function redactValue(text) {
  const { start, isCut } = startOf(text, MOST_SHOWN, true);
  // The '@' of a login may be beyond the cut.
  const value = isCut && text.includes('@') ? `${start}@` : start;
  if (SERVER.test(value)) return shownUrl(value);
  const [keyword] = KEYWORD.exec(value) ?? [];
  if (keyword === undefined) return withoutLogin(value);
  return withoutLogin(value.slice(0, value.indexOf(keyword))) + keyword + HIDDEN;
}

module.exports = {
  SERVER,
  forget,
  hasPassword,
  isSecretOption,
  knowsSecrets,
  learn,
  learnPassword,
  printable,
  redact,
  redactForeign,
  redactFrames,
  redactValue,
  sanitize,
  showsNone,
  showsPassword,
};
