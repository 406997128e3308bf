'use strict';
// `npx snowdrift`, as it is run: what it prints, where, and how it ends.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const { once } = require('node:events');
const {
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  writeFileSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');

const { distance } = require('../../js/cli/words.js');
const { fromBase32, toBase32 } = require('../../js/id.js');
const { isStorms } = require('../support/amount.js');
const { endOf, firstLine, json, run, start } = require('../support/cli.js');
const { refusing } = require('../support/echo.js');
const { createDirectory, removeDirectory } = require('../support/own-directory.js');
const { SnowFlake, countDuplicates } = require('../support/support.js');

const NODE = ['--datacenter-id', '3', '--worker-id', '7'];

test('next prints IDs, one a line, of the node that is named', async () => {
  const { stdout, code } = await run(['next', '-n', '5000', ...NODE]);
  const ids = stdout.trim().split('\n');
  assert.deepEqual([code, ids.length, countDuplicates(ids)], [0, 5000, 0]);
  const { datacenterId, workerId } = SnowFlake.parse(ids[0], 'node');
  assert.deepEqual([datacenterId, workerId], [3, 7]);
  const env = { datacenterId: '3', workerId: '8' };
  const one = await run(['next'], { env });
  assert.equal(SnowFlake.parse(one.stdout.trim(), 'node').workerId, 8);
  const list = await json('next', '-n', '2', '--layout', 'twitter', ...NODE);
  assert.ok(list.every((id) => typeof id === 'string'));
});

test('next draws base32, and parse reads it', async () => {
  const { stdout } = await run(['next', '--base32', '-n', '3', ...NODE]);
  const drawn = stdout.trim().split('\n');
  const decimal = drawn.map((id) => String(fromBase32(id)));
  assert.equal(countDuplicates(decimal), 0);
  const parsed = await json('parse', ...drawn);
  assert.deepEqual(
    parsed.map(({ id }) => id),
    decimal,
  );
  // Decimal as well as base32.
  const both = '1234567890123';
  assert.equal((await json('parse', both))[0].id, both);
});

test('parse shows the bits and the value of each field', async () => {
  const { stdout, code } = await run(['parse', '1541815603606036480', '--layout', 'twitter']);
  assert.equal(code, 0);
  const [id, ...rows] = stdout.trimEnd().split('\n');
  assert.equal(id, '1541815603606036480');
  const bits = rows.map((row) => / bits {2,}([01]+)/.exec(row)[1]);
  assert.equal(BigInt(`0b${bits.join('')}`), 1541815603606036480n);
  assert.match(
    rows[0],
    /^timestamp +41 bits {2}[01]{41} {2}2022-06-28T16:07:40\.105Z \(1656432460105\)$/,
  );
  assert.match(rows[2], /^workerId +5 bits {3}[01]{5} +26$/);
  const layout = ['--layout', '41/3/5/2/12', '--epoch', '0'];
  const [one, two] = await json('parse', '4194304', '8388609', ...layout);
  assert.deepEqual([one.timestamp, two.timestamp, two.sequence], [1, 2, 1]);
  assert.equal(two.id, '8388609');
});

test('layout shows what bit widths allow', async () => {
  const { stdout } = await run(['layout', 'node']);
  assert.match(stdout, /^node\nbits +41\/3\/5\/2\/12 .*0 unused\n/);
  assert.match(stdout, /2020-01-31T16:00:00\.000Z to 2089-10-07T07:47:35\.552Z/);
  assert.match(stdout, /256: 8 datacenters x 32 workers/);
  assert.match(stdout, /4,096 per tick and node, 4,096,000 per second/);
  assert.match(stdout, /\ndigits +(19 from 2027-08-22T03:22:59\.101Z: .* decimal text|no more)/);
  const { stdout: slow } = await run(['layout', '28/0/22/0/12@4097000']);
  assert.match(slow, /\nIDs +4,096 per tick and node\n/);
  const all = await json('layout');
  assert.deepEqual(all.node.digits.at(-1), { digits: 19, from: '2027-08-22T03:22:59.101Z' });
  assert.deepEqual(Object.keys(all), ['node', 'twitter', 'uid', 'discord', 'safe']);
  assert.equal(all.uid.yearsLeft, 0);
  const later = await json('layout', 'uid', '--epoch', '2026-01-01');
  assert.equal(later.ends, '2034-07-04T21:24:16.000Z');
  const short = await json('layout', '28/0/22/0/13@1000', '--epoch', '2026-01-01');
  assert.deepEqual(short, { ...later, yearsLeft: short.yearsLeft });
});

test('wrong usage exits with 2 and says what to do; a failure exits with 1', async () => {
  for (const [args, code, said] of [
    [['nope'], 2, /no command 'nope'\. The commands are next, parse, .*, serve, .*, help$/m],
    [
      ['next'],
      2,
      /pass --datacenter-id \(0 to 7\) and --worker-id \(0 to 31\), or set datacenterId and workerId in the environment, or .* --lease URL$/m,
    ],
    [
      ['serve', '--worker-id', '3'],
      2,
      /: pass --datacenter-id \(0 to 7\), or set datacenterId in [a-z ]*$/m,
    ],
    [['next', '--lease', 'redis://localhost'], 2, /: pass --datacenter-id \(0 to 7\), or set/],
    [['next', '--workerId', '3'], 2, /Unknown option '--workerId'\. Did you mean --worker-id\?$/m],
    [['next', '5'], 2, /next takes no argument; remove '5': -n 5 generates that many IDs$/m],
    [['next', '--worker-id'], 2, /'--worker-id <value>' argument missing/],
    [['next', '--worker-id', ''], 2, /: --worker-id is empty: check that the variable it comes/],
    [['publik', 'key'], 2, /no command 'publik'\. Did you mean public\? The commands/],
    [['decode', '1'], 2, /Did you mean public decode\?/],
    [['leses'], 2, /no command 'leses'\. Did you mean leases\?/],
    [['help', 'slotz'], 2, /no command 'slotz'\. Did you mean slots\?/],
    [['leases', 'slots'], 2, /no command 'leases slots'\. Did you mean slots\?/],
    [['--layout', 'uid', 'next'], 2, /: the command comes first: snowdrift next -n 5$/m],
    [['next', '-n', '0', ...NODE], 2, /-n must be a whole number from 1 to 1000000; it is '0'/],
    [['next', '-n', '-5', ...NODE], 2, /'-n' argument is ambiguous.*--count=-XYZ/],
    [['next', '--lease', 'file:///tmp', '--worker-id', '1'], 2, /leave out --worker-id/],
    [['next', '--worker-id', '99', '--datacenter-id', '1'], 2, /--worker-id must be .* 0 to 31/],
    [['next', ...NODE, '--layout', 'uid'], 2, /--datacenter-id must be .* from 0 to 0; it is '3'/],
    [
      ['next', ...NODE, '--state', 'redis://x'],
      2,
      /--state must be the absolute path of a directory/,
    ],
    [
      ['next', '--datacenter-id', '1', '--lease', 'gopher://x'],
      2,
      /--lease must be a URL of file:/,
    ],
    [['slots', 'file:///a', 'file:///b'], 2, /slots takes one URL, not 2/],
    [['slots', '--host', 'file:///a'], 2, /--host shows this host: leave out the URL/],
    [['slots', ''], 2, /: an argument of slots is empty: check/],
    [['slots', 'postgres://app:ge#heim@db/x'], 2, /slots is not a valid URL.*Percent-encode/],
    [['recover'], 2, /recover needs a URL, such as snowdrift recover file:/],
    [['recover', 'file:///no/such', '--new', '--lost'], 2, /--new is for .*: leave out one$/m],
    [['namespace', 'table'], 2, /no command 'namespace table'. Did you mean namespace tables\?/],
    [['namespace', 'recover'], 2, /'namespace recover'. Did you mean recover\?/],
    [
      ['namespace', 'nope'],
      2,
      /'namespace nope'\. The commands are next, .*, recover, .*namespace tables, .*help$/m,
    ],
    [['public', '--json'], 2, /no command 'public --json'\. The commands are .*public key, /],
    [['--json', 'public', 'key'], 2, /the command comes first/],
    [['public', 'constructor'], 2, /no command 'public constructor'\. The commands are /],
    [['tables', 'redis://u:geheim@h'], 2, /'tables'\. Did you mean namespace tables\?/],
    [['recover', 'file:///no/such'], 1, /ERR_SNOWFLAKE_STORE: .*\/no\/such.* Check the path/],
    [['reset', 'file:///var'], 2, /no command 'reset'/],
    [['recover', 'redis://localhost', '--ttl', '5'], 2, /--ttl must be a whole number from 1000/],
    [['slots', 'file:///no/such'], 1, /ERR_SNOWFLAKE_STORE: .*\/no\/such.* Check the path/],
    [['parse'], 2, /parse needs an ID/],
    [['parse', '007'], 1, /decimal digits without leading zeros, from 0 to .*; it is '007'/],
    [['parse', '12', '1.5'], 1, /ERR_SNOWFLAKE_INVALID_ID: .*it is '1\.5'/],
    [['parse', '1', '--layout', 'mastodon'], 2, /the layout must be node, twitter/],
    [['layout', '99/1/1'], 2, /must be node, .* or five numbers of bits, .* it is '99\/1\/1'/],
    [['layout', 'node', '--layout', 'uid'], 2, /layout takes one layout, not 2: 'node', 'uid'/],
    [['layout', 'node', '--epoch', 'soon'], 2, /--epoch must be Unix ms or a date; it is 'soon'/],
    [['serve', '--port', '99999', ...NODE], 2, /--port must be a whole number from 0 to 65535/],
  ]) {
    const answer = await run(args);
    assert.deepEqual([answer.code, answer.stdout], [code, ''], args.join(' '));
    assert.match(answer.stderr, said);
  }
});

test('slots without a URL: this host’s pages, and the processes of each', {
  skip: process.platform === 'linux' ? false : 'tried on Linux',
}, async () => {
  const env = { SNOWDRIFT_SHARED: createDirectory() };
  assert.match((await run(['slots'], { env })).stdout, /No process of this user has generated IDs/);
  const own = start(['serve', '--port', '0', ...NODE], { env });
  await firstLine(own);
  const { directory, pages } = JSON.parse((await run(['slots', '--json'], { env })).stdout);
  assert.ok(directory.startsWith(env.SNOWDRIFT_SHARED), directory);
  const [{ path, datacenterId, workerId, processes }] = pages;
  assert.deepEqual([pages.length, datacenterId, workerId], [1, 3, 7]);
  assert.ok(path.startsWith(directory), path);
  const [{ pid, users, isAlive }] = processes;
  assert.deepEqual([pid, users, isAlive], [own.pid, 1, true]);
  const row = new RegExp(`^3 +7 +node +none +${own.pid} +1 +20\\S+:\\d\\dZ$`, 'm');
  const { stdout: used } = await run(['slots'], { env });
  assert.match(used, row);
  assert.ok(!used.includes('.page') && !used.includes('--all'), used);
  const ended = endOf(own);
  own.kill('SIGKILL');
  await ended;
  // A page outlives its processes.
  const { stdout: unused } = await run(['slots'], { env });
  assert.match(
    unused,
    /\nNo process uses a page\.\n1 page is used by no process: --all shows it$/m,
  );
  assert.doesNotMatch(unused, /^3 /m);
  const flake = ['next', ...NODE, '--epoch', '2020-01-01'];
  await endOf(start([...flake, '--layout', 'twitter'], { env }));
  assert.match((await run(['slots'], { env })).stdout, /\n2 pages are .*: --all shows them\n$/);
  const { stdout: all } = await run(['slots', '--all'], { env });
  const leased = { ...env, SNOWDRIFT_LEASE: 'file:///no/such' };
  assert.equal((await run(['slots', '--host', '--all'], { env: leased })).stdout, all);
  assert.match(
    all,
    /\n3 +7 +node +none +none +\S+-worker-7[.]page\n3 +7 +41\/5\/5\/0\/12@1\+1577836800000 +none +none +\S+[.]page\nNo process uses a page\.\n$/,
  );
  assert.equal(JSON.parse((await run(['slots', '--json'], { env })).stdout).pages.length, 2);
  const hostile = join(directory, '\u001b]0;owned\u0007\u009b31m\u202e\n.page');
  copyFileSync(path, hostile);
  const { stdout: shown } = await run(['slots', '--all'], { env });
  assert.match(shown, /^([^\p{Cc}\u202e]+\n)+$/u);
  assert.match(shown, /\\u001b\]0;owned\\u0007\\u009b31m\\u202e\\u000a\.page\n/);
  const { stdout: json } = await run(['slots', '--json'], { env });
  assert.match(json, /^([^\p{Cc}\u202e]+\n)+$/u);
  const { pages: listed } = JSON.parse(json);
  assert.ok(listed.some((page) => page.path === hostile));
  writeFileSync(path, 'damage');
  assert.match((await run(['slots'], { env })).stdout, /is 6 bytes long and should be 4096/);
});

test('slots without a URL: who renews a lease of this host, and until when it is held', {
  skip: process.platform === 'linux' ? false : 'tried on Linux',
}, async () => {
  const { memory } = require('../../js/stores/memory.js');
  const env = { SNOWDRIFT_SHARED: process.env.SNOWDRIFT_SHARED };
  // Not renewed, and so not changed, while this test runs.
  const flake = await SnowFlake.lease(memory(), { datacenterId: 5, ttl: 3_600_000 });
  const { pages } = JSON.parse((await run(['slots', '--json'], { env })).stdout);
  const page = pages.find(({ datacenterId }) => datacenterId === 5);
  const { expires } = flake.lease;
  assert.deepEqual([page.kind, page.renewer, page.expires], ['lease', process.pid, expires]);
  const line = new RegExp(`^5 .* expires in \\d+ min +${process.pid} \\(renews\\) `, 'm');
  assert.match((await run(['slots'], { env })).stdout, line);
  await flake.close();
  const after = JSON.parse((await run(['slots', '--json'], { env })).stdout);
  assert.ok(after.pages.every(({ datacenterId }) => datacenterId !== 5));
});

test('a time is shown by its distance while that is short, else to the second', () => {
  const now = Date.UTC(2026, 0, 1);
  for (const [ms, shown] of [
    [23_900, 'in 23 s'],
    [0, 'in 0 s'],
    [-1000, '1 s ago'],
    [119_999, 'in 119 s'],
    [120_000, 'in 2 min'],
    [-7_199_999, '119 min ago'],
    [7_200_000, '2026-01-01T02:00:00Z'],
    [-now, '1970-01-01T00:00:00Z'],
    [1e17, `${now + 1e17} (Unix ms)`],
  ]) {
    assert.equal(distance(now + ms, now), shown);
  }
});

const TOO_LONG = '1\n'.repeat(2 ** 21 + 1);

test('parse reads what next prints from its standard input', async () => {
  const parseInput = (input, args = []) => run(['parse', '--json', ...args], { input });
  const idsOf = ({ stdout }) => JSON.parse(stdout).map(({ id }) => id);
  for (const form of [[], ['--json'], ['--base32']]) {
    const { stdout } = await run(['next', '-n', '3', ...form, ...NODE]);
    const ids = idsOf(await parseInput(stdout));
    assert.equal(ids.length, 3);
    for (const id of ids) {
      assert.ok(stdout.includes(form[0] === '--base32' ? toBase32(id) : id), stdout);
    }
  }
  // Arguments come first.
  assert.deepEqual(idsOf(await parseInput('2', ['1'])), ['1']);
  for (const [text, code, said] of [
    ['', 2, /parse needs an ID/],
    [' \n', 2, /parse needs an ID/],
    ['1\nx\u001bm', 1, /it is 'x\\x1Bm'/],
    [TOO_LONG, 2, /standard input is longer than 4 MiB/],
  ]) {
    const answer = await parseInput(text);
    assert.deepEqual([answer.code, answer.stdout], [code, '']);
    assert.match(answer.stderr, said);
  }
});

test('the standard input of a process is a pipe, which it may leave before its end', async () => {
  const piped = (text) => {
    const child = start(['parse', '--json'], { stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin.on('error', () => {});
    child.stdin.end(text);
    return endOf(child);
  };
  assert.deepEqual(JSON.parse((await piped('"5"\n')).stdout)[0].id, '5');
  const { code, stderr } = await piped(TOO_LONG);
  assert.equal(code, 2);
  assert.match(stderr, /standard input is longer than 4 MiB/);
});

test('a process ends with the code of its command, also if that fails as no command is meant to', async () => {
  assert.equal((await endOf(start(['parse', 'x']))).code, 1);
  const broken = join(createDirectory(), 'broken.js');
  const error = `new Error('no redis://app:geheim@db and no \\x1b[31m')`;
  writeFileSync(broken, `JSON.stringify = () => { throw ${error}; };`);
  const env = { NODE_OPTIONS: `--require=${broken}` };
  const { code, stdout, stderr } = await endOf(start(['layout', '--json'], { env }));
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^snowdrift: Error: no redis:\/\/\S*db and no /);
  assert.ok(!stderr.includes('geheim') && !stderr.includes('\x1b'), stderr);
});

test('control characters of arguments are escaped in every error', async () => {
  const hostile = '\u001b]0;owned\u0007\u009b31m\u202e\n';
  for (const args of [
    [hostile],
    [`--${hostile}`, 'next'],
    ['next', hostile],
    ['next', `--${hostile}`],
    ['next', ...NODE, '--layout', hostile],
    ['next', ...NODE, '--state', `/no/${hostile}`],
    ['next', '--datacenter-id', '1', '--lease', hostile],
    ['next', '--lease-file', hostile],
    ['parse', hostile],
    ['layout', hostile, hostile],
    ['slots', hostile],
    ['slots', `file:///no/${hostile}`],
    ['slots', `postgres://user:pass@${hostile}/x`],
    ['namespace', hostile],
    ['public', 'encode', '--kind', hostile, '5'],
    ['public', 'decode', '--kind', 'a', hostile],
    ['namespace', 'tables', '--for', hostile],
    ['serve', ...NODE, '--host', hostile],
    ['serve', ...NODE, '--token-file', hostile],
  ]) {
    const { code, stderr } = await run(args);
    assert.notEqual(code, 0, JSON.stringify(args));
    assert.match(stderr, /^(snowdrift: [^\p{Cc}\u202e]+\n)+$/u, JSON.stringify([args, stderr]));
  }
});

test('an output that cannot be written is a failure with a reason', {
  skip: existsSync('/dev/full') ? false : 'it has no /dev/full',
}, async () => {
  const full = openSync('/dev/full', 'w');
  const child = start(['layout'], { stdio: ['ignore', full, 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  const [code] = await once(child, 'close');
  closeSync(full);
  assert.deepEqual([code, stderr], [1, 'snowdrift: cannot write the output (ENOSPC)\n']);
});

test('an error repeats only the beginning of a long argument', async () => {
  const long = 'a b! '.repeat(20_000);
  for (const args of [
    [long],
    ['public', long],
    ['next', long],
    ['next', `--${long}`],
    ['next', '--layout', 'node', long],
    ['layout', long, long],
    ['namespace', 'tables', long],
    ['namespace', 'tables', '--for', long],
    ['serve', long],
  ]) {
    const { code, stderr } = await run(args);
    assert.equal(code, 2, args[0]);
    assert.ok(stderr.length < 500, `${args[0]}: ${stderr.length} characters`);
  }
});

test('help slots explains what slots shows', async () => {
  const { stdout } = await run(['help', 'slots']);
  const words = ['held', 'free', 'unusable', 'namespace ID', 'limits', 'floor', 'IDs up to'];
  for (const word of [...words, 'lease', 'instances', 'page']) {
    assert.match(stdout, new RegExp(`^  ${word} +[a-z]`, 'm'));
  }
});

/** Whether a text is read at a glance: on one screen, without lines that wrap. */
function isScreen(text) {
  const lines = text.trimEnd().split('\n');
  assert.ok(lines.length <= 40 && lines.every((line) => line.length <= 100), text);
}

test('help says how each command is used, and the version is that of the package', async () => {
  const { stdout: all } = await run(['--help']);
  isScreen(all);
  assert.match(all, /Usage: snowdrift <command>/);
  for (const args of [['-h'], [], ['help', 'help']]) assert.equal((await run(args)).stdout, all);
  for (const [group, ...commands] of [
    ['ids', 'next', 'parse', 'layout'],
    ['leases', 'slots', 'recover', 'namespace tables'],
    ['namespace', 'slots', 'recover', 'namespace tables'],
    ['serving', 'serve'],
    ['public', 'public key', 'public encode', 'public decode'],
  ]) {
    const { stdout, stderr, code } = await run([group]);
    assert.deepEqual([code, stderr], [0, '']);
    const usages = Array.from(
      stdout.matchAll(/^ {2}snowdrift ([a-z]+(?: [a-z]+)?) /gm),
      ([, name]) => name,
    );
    assert.deepEqual(usages, commands);
    for (const args of [
      [group, '--help'],
      ['help', group],
      ['--help', group],
    ]) {
      assert.equal((await run(args)).stdout, stdout, String(args));
    }
  }
  const commands = Array.from(all.matchAll(/^ {2}([a-z]+(?: [a-z]+)?) {2}/gm), ([, name]) => name);
  assert.ok(commands.length > 8, String(commands));
  for (const command of commands.filter((name) => name !== 'help')) {
    const words = command.split(' ');
    const { stdout, code } = await run([...words, '--help']);
    assert.equal(code, 0);
    for (const args of [
      ['help', ...words],
      [...words, 'help'],
      [...words, '-h'],
    ]) {
      assert.equal((await run(args)).stdout, stdout);
    }
    assert.match(stdout, new RegExp(`^Usage: snowdrift ${command} `));
    isScreen(stdout);
  }
  assert.equal((await run(['-v'])).stdout, (await run(['--version'])).stdout);
  assert.equal((await run(['--version'])).stdout, `${require('../../package.json').version}\n`);
});

test('a pipe that is closed early is no failure', async () => {
  const child = start(['next', '-n', '200000', ...NODE]);
  child.stdout.once('data', () => child.stdout.destroy());
  const { code, stderr } = await endOf(child);
  assert.deepEqual([code, stderr], [0, '']);
});

test('a client that is not installed: which package, and where', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'snowdrift-cli-'));
  try {
    cpSync(join(__dirname, '../../js'), join(directory, 'js'), { recursive: true });
    const args = [join(directory, 'js/cli/main.js'), 'slots', 'postgres://127.0.0.1/app'];
    const { stderr: said } = await promisify(execFile)(process.execPath, args, {
      timeout: 300_000,
    }).then(
      () => assert.fail('it was not refused'),
      (failure) => failure,
    );
    assert.match(said, /'pg': npm install pg, in the folder where you installed snowdrift$/m);
  } finally {
    removeDirectory(directory);
  }
});

test('a password comes from the environment or a file; one in an argument is warned of', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'snowdrift-file-'));
  const server = await refusing('redis');
  server.say('no such user');
  try {
    const file = join(folder, 'url');
    const urlOf = (password) => `redis://app:${password}@127.0.0.1:${server.port}`;
    const url = urlOf('geheim');
    const empty = join(folder, 'empty');
    writeFileSync(empty, '\n');
    const node = ['--datacenter-id', '1'];
    const warning = /warning: other users .* process list: use --lease-file/;
    const next = ['next', ...node];
    for (const [last, argsOf, isWarned, name] of [
      ['a', (given) => [...next, '--lease', given], true],
      ['b', () => [...next, '--lease-file', file], false],
      ['c', () => next, false, 'SNOWDRIFT_LEASE'],
      ['d', () => ['serve', ...node, '--port', '0', '--lease-file', file], false],
      ['e', (given) => ['slots', given], true],
      ['f', () => ['slots', '--lease-file', file], false],
      ['g', () => ['slots'], false, 'SNOWDRIFT_LEASE'],
      ['h', () => ['recover', '--new', '--lease-file', file], false],
    ]) {
      // One that this process has not learned by a command before.
      const given = urlOf(`geheim${last}`);
      writeFileSync(file, `${given}\n`);
      const { code, said } = await run(argsOf(given), { env: { ...(name && { [name]: given }) } });
      assert.equal(code, 1, said);
      assert.match(said, /ERR_SNOWFLAKE_STORE: Redis at /);
      // Unless the machine holds up the server until the call's time is over.
      if (isStorms) assert.match(said, /Redis at .*no such user/);
      assert.equal(warning.test(said), isWarned, said);
      assert.doesNotMatch(said, /geheim/);
    }
    for (const passwordless of ['redis://127.0.0.1:1', 'postgres://app@127.0.0.1:1/x']) {
      assert.doesNotMatch((await run(['slots', passwordless])).said, /warning/);
    }
    assert.match((await run(['slots', `${url}x`])).said, warning, 'also of a URL that is wrong');
    assert.match((await run(['slots', 'redis://db/?password=geheim&x=1'])).said, warning);
    for (const [args, said] of [
      [['slots', url, '--lease-file', file], /leave out the other one/],
      [['next', '--lease', url, '--lease-file', file], /leave out the other one/],
      [
        ['slots', '--lease-file', join(folder, 'absent')],
        /cannot read .*absent' of --lease-file \(ENOENT\): check/,
      ],
      [['slots', '--lease-file', empty], /the file '.*empty' of --lease-file is empty$/m],
      [['serve', ...node, '--token-file', empty], /the file '.*' of --token-file is empty$/m],
    ]) {
      const refusal = await run(args);
      assert.deepEqual([refusal.code, refusal.stdout], [2, ''], refusal.stderr);
      assert.match(refusal.stderr, said);
    }
  } finally {
    server.close();
    removeDirectory(folder);
  }
});
