'use strict';
// Keeps secrets, and control characters of strangers, out of all that is shown. Each way out passes one function:
// messages and causes of errors (the constructor of SnowFlakeError), quoted values and errors of clients (describe()
// in errors.js), names of stores, warnings, and the output of the command.
//
// A URL's parts are learned before a client gets them, since only clients quote them. Passwords that are long enough
// not to be a word of ours are removed from all texts, other parts from texts of others. A login in any URL is removed
// by its form.

const { types } = require('node:util');

const { withoutLogin } = require('./ids/error.js');

const HIDDEN = '***';

/** The shortest password that is removed from our own words, too. */
const STRONG = 6;

/** The most parts remembered. Each URL of a store has a few. */
const MOST_LEARNED = 2000;

/** Words of our own messages. As a password, they hide nothing. */
const WORDS = new Set(
  'postgres postgresql mysql mariadb redis rediss etcd etcds zookeeper zookeepers default root admin user password localhost'.split(
    ' ',
  ),
);

/** The options of a URL that errors show. */
const SHOWN_OPTIONS = ['host', 'namespace', 'port'];
const CREDENTIAL = /pass|pwd|secret|token|key|auth/i;
/** Options that name a file. */
const KEY_FILES = ['key', 'sslkey'];

const SERVER = /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i;
const SCHEME = /\b(?!file:)[a-z][a-z0-9+.-]{0,30}:\/\//i;
const FILE_LOGIN = /\bfile:\/\/[^/\s]*@/gi;

/** By text: whether it is a password. */
const learned = new Map();
/** What removes them: all, and strong passwords. */
let patterns = { all: undefined, strong: undefined };

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

/** A part of a URL in each form in which a client may show it. */
function formsOf(part) {
  const decoded = decode(part);
  const encoded = encodeURIComponent(decoded);
  const lower = encoded.replace(/%../g, (code) => code.toLowerCase());
  const spaced = decode(part.replaceAll('+', ' '));
  const inForm = String(new URLSearchParams({ '': decoded })).slice(1);
  return [part, decoded, spaced, encoded, lower, inForm, JSON.stringify(decoded).slice(1, -1)];
}

function add(part, isPassword) {
  for (const form of formsOf(part)) {
    if (/^\d*$/.test(form) && !isPassword) continue;
    if (form !== '' && !WORDS.has(form))
      learned.set(form, isPassword || learned.get(form) === true);
  }
}

/** Learns the secrets of a URL that a client gets. */
function learn({ host, hostname, username, password, pathname, search, hash }) {
  add(password, true);
  // A user without a password is a token.
  add(username, password === '');
  const login = Buffer.from(`${decode(username)}:${decode(password)}`).toString('base64');
  if (password !== '') add(login, true);
  for (const segment of pathname.split('/')) add(segment, false);
  for (const option of search.slice(1).split('&')) {
    const [name, value = ''] = option.split(/=(.*)/s);
    if (SHOWN_OPTIONS.includes(name)) continue;
    add(value, CREDENTIAL.test(name));
    // A JSON object of options.
    for (const [, text] of decode(value).matchAll(/:\s*"([^"]+)"/g)) add(text, true);
  }
  add(hash.slice(1), false);
  for (const shown of [host, hostname]) learned.delete(shown);
  makePatterns();
}

function learnPassword(text) {
  if (learned.get(text) === true) return;
  add(text, true);
  makePatterns();
}

/** Forgets a password that is no longer valid, such as a token. */
function forget(text) {
  for (const form of formsOf(text)) learned.delete(form);
  makePatterns();
}

function makePatterns() {
  for (const [oldest] of learned) {
    if (learned.size <= MOST_LEARNED) break;
    learned.delete(oldest);
  }
  const all = [...learned].sort(([a], [b]) => b.length - a.length);
  patterns = {
    all: patternOf(all),
    strong: patternOf(all.filter(([text, isPassword]) => isPassword && text.length >= STRONG)),
  };
}

/** A pattern of texts. Short ones and numbers match as whole words only. */
function patternOf(entries) {
  if (entries.length === 0) return undefined;
  const each = entries.map(([text]) => {
    const literal = text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
    return text.length < STRONG || /^\d+$/.test(text) ? `(?<!\\w)${literal}(?!\\w)` : literal;
  });
  return new RegExp(each.join('|'), 'g');
}

const removeLearned = (text, pattern) =>
  pattern === undefined ? text : text.replace(pattern, HIDDEN);

/** A text without what its form shows to be a login or options of a URL. Linear: a server may send megabytes. */
function removeLogins(text) {
  if (!text.includes('//')) return text;
  return text.replace(/\S+/g, removeLogin).replace(FILE_LOGIN, `file://${HIDDEN}@`);
}

/** A word without the login and the options of the first URL in it. */
function removeLogin(word) {
  const found = SCHEME.exec(word);
  if (found === null) return word;
  const start = found.index + found[0].length;
  const at = word.lastIndexOf('@');
  let end = word.slice(start);
  if (at >= start) {
    // With '/', '?' or '#' before '@', what follows may be part of a password, too.
    const isWhole = !/[/?#]/.test(word.slice(start, at));
    end = HIDDEN + (isWhole ? word.slice(at) : '');
  }
  return word.slice(0, start) + end.replace(/\?.*/s, `?${HIDDEN}`);
}

/** A text of our own, without secrets. */
const redact = (text) => removeLogins(removeLearned(text, patterns.strong));

/** A text of a client, a server or the application, without secrets. */
const redactForeign = (text) => removeLogins(removeLearned(text, patterns.all));

/** Whether a URL has a password, or a user alone, which is a token. */
function hasPassword(text) {
  try {
    const { protocol, username, password, searchParams } = new URL(text);
    const options = [...searchParams].some(
      ([name, value]) => CREDENTIAL.test(name) && !KEY_FILES.includes(name) && value !== '',
    );
    return password !== '' || options || (username !== '' && /^redis|^etcd/.test(protocol));
  } catch {
    return /\/\/.*@/s.test(text);
  }
}

/** What a terminal or a log would act on. */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** A text whose control characters are escaped, so that it is one line. */
function printable(text) {
  return text.replace(CONTROLS, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A text of our own as it is shown: one line, without secrets. */
const sanitize = (text) => printable(redact(text));

/** A server's URL: scheme, host and port. Without the host if it may be part of a password. */
function shownUrl(text) {
  const [scheme] = SERVER.exec(text);
  const rest = text.slice(scheme.length);
  if (/[/?#].*@/s.test(rest)) return scheme + HIDDEN;
  const [, login, host, port = ''] = /^([^/?#]*@)?(\[[^\]]*\]|[^/?#:]*)(:[^/?#]*)?/.exec(rest);
  // Of an ensemble: zk1:2181,zk2:2181.
  const isPort = /^(:\d{1,5}(,[^:,]+:\d{1,5})*)?$/.test(port);
  if (login !== undefined) return `${scheme}${HIDDEN}@${host}${isPort ? port : ''}`;
  return scheme + (isPort ? host + port : HIDDEN);
}

/** A value of the application as text: a URL without its secrets. */
function redactValue(text) {
  const rest = removeLearned(text, patterns.all);
  return SERVER.test(rest) ? shownUrl(rest) : withoutLogin(rest);
}

/** How far the properties of a cause are searched. */
const MOST_OBJECTS = 2000;

/** Whether a value, or one that it leads to, shows a secret. Runs no code of the application. */
function showsSecret(value) {
  const found = new Set([value]);
  for (const one of found) {
    if (typeof one === 'string' && redactForeign(one) !== one) return true;
    if (found.size > MOST_OBJECTS) return learned.size > 0;
    if (Object(one) !== one || types.isProxy(one) || ArrayBuffer.isView(one)) continue;
    for (const key of Reflect.ownKeys(one)) {
      found.add(Object.getOwnPropertyDescriptor(one, key)?.value);
    }
    if (types.isMap(one)) for (const pair of Map.prototype.entries.call(one)) found.add(pair);
    if (types.isSet(one)) for (const each of Set.prototype.values.call(one)) found.add(each);
    if (types.isNativeError(one)) found.add(one.stack);
  }
  return false;
}

/** A cause; or, if it shows a secret, a copy of what errors have, without it. */
function redactCause(cause, depth = 0) {
  if (typeof cause === 'string') return redactForeign(cause);
  try {
    if (!showsSecret(cause)) return cause;
    const copy = new Error(redactForeign(String(cause.message ?? '')));
    const set = (name, value) =>
      Object.defineProperty(copy, name, { __proto__: null, value, configurable: true });
    set('name', redactForeign(String(cause.name ?? 'Error')));
    set('stack', redactForeign(String(cause.stack ?? copy.stack)));
    if (['string', 'number'].includes(typeof cause.code)) copy.code = cause.code;
    if (depth < 3 && cause.cause !== undefined) set('cause', redactCause(cause.cause, depth + 1));
    return copy;
  } catch {
    return new Error('the cause cannot be read');
  }
}

module.exports = {
  SERVER,
  forget,
  hasPassword,
  learn,
  learnPassword,
  printable,
  redact,
  redactCause,
  redactForeign,
  redactValue,
  sanitize,
};
