'use strict';
// For processes of other users of this machine, who may not be able to enter the directory of this clone, or TMPDIR.

const { spawnSync } = require('node:child_process');
const { chmodSync, cpSync, mkdtempSync, rmSync, statSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { dirname, join, resolve } = require('node:path');

const ROOT = join(__dirname, '../..');
const OTHERS_ENTER = 0o001;

/** Whether each user can reach a directory. */
function isReachable(path) {
  try {
    const isOpen = (statSync(path).mode & OTHERS_ENTER) !== 0;
    return isOpen && (path === dirname(path) || isReachable(dirname(path)));
  } catch {
    return false;
  }
}

/**
 * A new directory on a disk. It is open to its owner alone, but no directory above it keeps out other users, which a
 * process of root can have.
 */
function createReachable() {
  const places = [tmpdir(), '/tmp', '/var/tmp'].map((path) => resolve(path));
  const parent = process.getuid?.() === 0 ? places.find(isReachable) : tmpdir();
  if (parent === undefined) {
    throw new Error('no directory that each user can enter: tried TMPDIR, /tmp and /var/tmp');
  }
  return mkdtempSync(join(parent, 'snowdrift-test-'));
}

let copy;

/** The path of a copy of the package and of the files beside this one, which each user can read. */
function publicCopy() {
  if (copy !== undefined) return copy;
  copy = createReachable();
  chmodSync(copy, 0o755);
  process.on('exit', () => rmSync(copy, { recursive: true, force: true }));
  for (const part of ['js', 'package.json']) {
    cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  }
  const isFile = (path) => path === __dirname || path.endsWith('.js');
  cpSync(__dirname, join(copy, '__test__/support'), { recursive: true, filter: isFile });
  return copy;
}

/** The start of a command that runs as this user. */
const as = (user, group = user) => [
  'setpriv',
  `--reuid=${user}`,
  `--regid=${group}`,
  '--clear-groups',
];

/** Why no other user can run Node here, or undefined. */
function noOtherUser() {
  if (process.platform !== 'linux') return 'users are tried on Linux';
  if (process.getuid() !== 0) return 'only root can become another user';
  const [command, ...args] = [...as(65534), process.execPath, '--version'];
  return spawnSync(command, args).status === 0 ? undefined : 'no other user can run Node here';
}

module.exports = { as, createReachable, noOtherUser, publicCopy };
