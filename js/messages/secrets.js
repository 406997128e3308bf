'use strict';
// Keeps secrets, and control characters of strangers, out of all that is shown. Each way out passes one function:
// messages of errors (the constructor of SnowFlakeError) and their causes (causes.js), quoted values and errors of
// clients (describe() in errors.js), names of stores, warnings, and the output of the command.
//
// A secret is a password, a token or a key. Those in URLs and options are learned before a client gets them, since
// only clients quote them. A login in any URL is removed by its form. Users, databases, hosts and paths are shown.
//
// A stranger's text may have megabytes. It is cut before it is searched, and each search is linear.

const { printable, withoutLogin } = require('../ids/shown.js');

const HIDDEN = '***';

/** The most characters of a stranger's text that are searched and shown. */
const MOST_SHOWN = 4000;

/** The most texts remembered. Each secret has a few forms. */
const MOST_LEARNED = 2000;

const CREDENTIAL = /pass|pw|pfx|cred|secret|token|key|auth/i;
/** Options of a URL that are named like a secret, and are none: paths of files, a prefix and a switch. */
const NO_SECRETS = ['key', 'sslkey', 'keyPrefix', 'insecureAuth'];

const SERVER = /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i;

/** What removes a secret, by its text: that text or, for a weak one, a pattern. */
const learned = new Map();
/** The same, the longest first: one secret may be part of another. */
let removals = [];
let longest = 0;

/** A text without its escapes. Malformed ones stay. */
function decode(text) {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}

/** A secret in each form in which a client may show it. */
function formsOf(part) {
  const decoded = decode(part);
  const encoded = encodeURIComponent(decoded.replace(/\p{Cs}/gu, '\ufffd'));
  const lower = encoded.replace(/%../g, (code) => code.toLowerCase());
  const spaced = decode(part.replaceAll('+', ' '));
  const inForm = String(new URLSearchParams({ '': decoded })).slice(1);
  return [part, decoded, spaced, encoded, lower, inForm, JSON.stringify(decoded).slice(1, -1)];
}

/** Whether a secret is a word or a number, which other texts have, too: "postgres", "my-app", "1234". */
function isWeak(text) {
  const isWord = (part) => /^([A-Z]?[a-z]*|[A-Z]*|\d*)$/.test(part);
  return text.length < 6 || (text.length < 16 && text.split(/[-_. ]/).every(isWord));
}

/** What removes a secret. A weak one is removed as a whole word only, and not from a path. */
function removalOf(text) {
  if (!isWeak(text)) return text;
  const literal = text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  return new RegExp(`(?<![\\w/\\\\.-])${literal}(?![\\w/\\\\-]|\\.\\w)`, 'g');
}

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

/** Whether an option of a URL is a secret, by its name: users misspell names. */
const isSecretOption = (name) => CREDENTIAL.test(name) && !NO_SECRETS.includes(name);

/** Whether the user of a URL is a token. */
const hasToken = ({ protocol, username, password }) =>
  password === '' && username !== '' && /^(redis|etcd)/.test(protocol);

/** Learns the secrets of a URL that a client gets. */
function learn(url) {
  const { username, password, hostname, pathname, search, hash } = url;
  const [user, secret] = [decode(username), decode(password)];
  // A weak password that is also the name of the user, the host or the database is shown as that name.
  const names = [user, hostname, ...pathname.split('/').map(decode)];
  if (!isWeak(secret) || !names.includes(secret)) add(password);
  if (password !== '') add(Buffer.from(`${user}:${secret}`).toString('base64'));
  if (hasToken(url)) add(username);
  for (const option of search.slice(1).split('&')) {
    const [name, ...parts] = option.split('=');
    const value = parts.join('=');
    if (isSecretOption(decode(name))) add(value);
    else learnJson(decode(value));
  }
  // No client has a use for it: it may be the rest of a password.
  add(hash.slice(1));
  sortLearned();
}

/** Learns the secrets in a JSON object of options. */
function learnJson(text) {
  if (!text.startsWith('{')) return;
  try {
    JSON.parse(text, (name, value) => {
      if (typeof value === 'string' && CREDENTIAL.test(name)) add(value);
      return value;
    });
  } catch {
    // The client refuses it, too.
  }
}

function learnPassword(text) {
  if (learned.has(text)) return;
  add(text);
  sortLearned();
}

/** Forgets a password that is no longer valid, such as a token. */
function forget(text) {
  for (const form of formsOf(text)) learned.delete(form);
  sortLearned();
}

/** @param ofOthers whether the text is not our own: weak secrets are words of ours, too */
function removeLearned(text, ofOthers) {
  let rest = text;
  for (const removal of removals) {
    if (ofOthers || typeof removal === 'string') rest = rest.replaceAll(removal, HIDDEN);
  }
  return rest;
}

/** The host of a file: URL; and what follows '//' in any other word. */
const LOGINS = /\bfile:\/\/([^/\s]*)|\/\/(\S*)/gi;

/**
 * A text without what its form shows to be a login or options of a URL.
 * @param isCut whether the last URL may go on behind the end
 */
function removeLogins(text, isCut = false) {
  return text.replace(LOGINS, (found, fileHost, word, offset) => {
    const address = fileHost ?? word;
    const before = found.slice(0, found.length - address.length);
    if (isCut && offset + found.length === text.length) return before + HIDDEN;
    const at = address.lastIndexOf('@');
    // With '/', '?' or '#' before '@', what follows may be part of a password, too.
    if (address.slice(0, at + 1).search(/[/?#]/) >= 0) return before + HIDDEN;
    const shown = at < 0 ? address : HIDDEN + address.slice(at);
    const options = shown.indexOf('?');
    return before + (options < 0 ? shown : `${shown.slice(0, options)}?${HIDDEN}`);
  });
}

/** A text of our own, without secrets. */
const redact = (text) => removeLogins(removeLearned(text, false));

/**
 * The start of a text, without learned secrets. One at its end may be cut in two, and so be unknown: as many characters
 * as the longest has are read beyond it, and taken away.
 */
function startOf(text, most, ofOthers) {
  const isCut = text.length > most + longest;
  if (!isCut) return { start: removeLearned(text, ofOthers), isCut };
  const read = removeLearned(text.slice(0, most + longest), ofOthers);
  return { start: read.slice(0, Math.max(0, read.length - longest)), isCut };
}

/** The start of a text of a client, a server or the application, without secrets. */
function redactForeign(text, most = MOST_SHOWN) {
  const { start, isCut } = startOf(text, most, true);
  return removeLogins(start, isCut);
}

/** The start of the lines of a stack, whose paths have words that are weak secrets, too. */
const redactFrames = (text) => startOf(text, MOST_SHOWN, false).start;

/** Whether any secret was learned. */
const knowsSecrets = () => learned.size > 0;

/** A login in a URL, or a password in its options. What is repeated is bounded, or ends at what begins it. */
const UNLEARNED = /\/\/[^/?#\s@]+@|[?&]\w{0,20}pass\w{0,20}=/i;

/** Whether a whole text of the application shows no secret. Its URLs may have options, and '@' in a path. */
const showsNone = (text) => !UNLEARNED.test(text) && removeLearned(text, true) === text;

/** Whether a URL has a password or a token. */
function hasPassword(text) {
  try {
    const url = new URL(text);
    const isSecret = ([name, value]) => isSecretOption(name) && value !== '';
    return url.password !== '' || hasToken(url) || [...url.searchParams].some(isSecret);
  } catch {
    return text.includes('//') && text.lastIndexOf('@') > text.indexOf('//');
  }
}

/** Whether the form of a name of the application shows a login or a password. */
const showsPassword = (text) => KEYWORD.test(text) || UNLEARNED.test(text) || hasPassword(text);

/** A text of our own as it is shown: one line, without secrets. */
const sanitize = (text) => printable(redact(text));

/** A server's URL: scheme, host and port. Without the host if it may be part of a password. */
function shownUrl(text) {
  const [scheme] = SERVER.exec(text);
  const rest = text.slice(scheme.length);
  const end = rest.search(/[/?#]|$/);
  const at = rest.lastIndexOf('@');
  if (at > end) return scheme + HIDDEN;
  const [, host, port = ''] = /^(\[[^\]]*\]|[^:]*)(.*)$/s.exec(rest.slice(at + 1, end));
  // Of an ensemble: zk1:2181,zk2:2181.
  const isPort = /^(:\d{1,5}(,[^:,]+:\d{1,5})*)?$/.test(port);
  if (at >= 0) return `${scheme}${HIDDEN}@${host}${isPort ? port : ''}`;
  return scheme + (isPort ? host + port : HIDDEN);
}

/** In a connection string that is no URL, as those of libpq and of Azure, and in options as JSON. */
const KEYWORD = /(?:pass(?:word|wd)?|pwd|secret|token)(?:\s{0,3}=|["']\s{0,3}:)/i;

/** Whether a text in the place of a path is a connection string, or a login without its scheme. A path may begin with './'. */
const isConnection = (text) =>
  !/^([./\\]|[a-z]:[/\\])/i.test(text) && (KEYWORD.test(text) || /^[^/\\@:]{2,}:.*@/s.test(text));

/** The start of a value of the application as text: a URL or another connection string without its secrets. */
function redactValue(text) {
  const { start, isCut } = startOf(text, MOST_SHOWN, true);
  // Behind the end there may be the '@' of a login.
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
  isConnection,
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
