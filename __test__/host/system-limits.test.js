'use strict';
// What the system refuses: each error names the cause and what to do about it.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { mkdtempSync, symlinkSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { test } = require('node:test');
const { pathToFileURL } = require('node:url');

const { removeDirectory } = require('../support/own-directory.js');
const { wordsFor } = require('../../js/messages/faults.js');
const { SnowFlake, refuses } = require('../support/support.js');

const skip = process.platform !== 'linux' && 'tried on Linux';

function scratch(t) {
  const directory = mkdtempSync(join(tmpdir(), 'snowdrift-'));
  t.after(() => removeDirectory(directory));
  return directory;
}

test('the error of a process at its limit of open files says so', { skip }, (t) => {
  const directory = scratch(t);
  const node = { datacenterId: 1, workerId: 1 };
  const script = `
    const fs = require('node:fs');
    const { SnowFlake } = require('../..');
    const ways = {
      page: (node) => new SnowFlake(node),
      state: (node) => new SnowFlake({ ...node, state: '${directory}' }),
      lease: ({ datacenterId }) => SnowFlake.lease('${pathToFileURL(directory)}', { datacenterId }),
    };
    (async () => {
      // Loads all that these take. The slots have files.
      for (const open of Object.values(ways)) await (await open(${JSON.stringify(node)})).close();
      const taken = [];
      try {
        for (;;) taken.push(fs.openSync('/dev/null'));
      } catch {}
      const refused = {};
      for (const [way, open] of Object.entries(ways)) {
        try {
          await open({ datacenterId: 1, workerId: 2 });
        } catch ({ code, message }) {
          refused[way] = [code, message];
        }
      }
      for (const file of taken) fs.closeSync(file);
      console.log(JSON.stringify(refused));
    })();`;
  const limited = ['-c', 'ulimit -n 96; exec "$0" -e "$1"', process.execPath, script];
  const printed = execFileSync('sh', limited, { cwd: __dirname, encoding: 'utf8' });
  const refused = JSON.parse(printed);
  assert.deepEqual(Object.keys(refused), ['page', 'state', 'lease']);
  for (const [code, message] of Object.values(refused)) {
    assert.equal(code, 'ERR_SNOWFLAKE_STORE', message);
    assert.match(message, /Too many open files.*\(ulimit -n\)/);
  }
});

test('the error for a path that is too long, or a loop of links, says so', { skip }, (t) => {
  const directory = scratch(t);
  const loop = join(directory, 'loop');
  symlinkSync(loop, loop);
  for (const [state, pattern] of [
    [join(directory, 'x'.repeat(300)), /File name too long.*Give a shorter path/],
    [join(loop, 'ids'), /Too many levels of symbolic links.*Give a path without a loop/],
    [loop, /symbolic link/],
  ]) {
    const { message } = refuses(
      () => new SnowFlake({ datacenterId: 1, workerId: 1, state }),
      'ERR_SNOWFLAKE_STORE',
    );
    assert.match(message, pattern);
  }
});

test('a failure of the system names what to do about its reason', () => {
  for (const [kind, other] of [
    ['page-io', /SNOWDRIFT_SHARED/],
    ['slot-io', /another directory|its parent directory/],
  ]) {
    const messageOf = (reason) =>
      wordsFor({ kind, doing: 'open', place: '/a/path', cause: 'why', reason }).message;
    for (const reason of ['PermissionDenied', 'ReadOnlyFilesystem', 'NotFound']) {
      assert.match(messageOf(reason), other);
    }
    for (const reason of ['StorageFull', 'QuotaExceeded', 'NoLocks', 'TooManyFiles']) {
      assert.doesNotMatch(messageOf(reason), /Check the disk/);
    }
    assert.match(messageOf('Uncategorized'), /^cannot open \/a\/path: why\. Check the disk/);
  }
});
