'use strict';
// Every block of docs/public-ids.md, and the files of examples/public-ids: in JavaScript and its frameworks, in Python, Go and
// SQL. Each prints what it says, gives the texts of the test vectors, takes no other text, and shows no ID.

const assert = require('node:assert/strict');
const { execFile, spawnSync } = require('node:child_process');
const { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { describe, test } = require('node:test');
const { promisify } = require('node:util');

const { Client } = require('pg');

require('../support/own-directory.js');
const { gate, skipped, storm } = require('../support/amount.js');
const { missingPackages } = require('../support/installed.js');
const { Server, missing } = require('../support/lease/servers.js');
const { blocksOf, runProgram, runShell, runSql } = require('../support/page.js');
const {
  KEY,
  OTHER_KEY: otherKey,
  toBase64,
  vectors,
  withOwnKey,
} = require('../support/public-ids.js');
const { publicIds } = require('../../js/public.js');

const FORMAT = 'docs/public-ids-format.md';
const PAGE = 'docs/public-ids.md';
const EXAMPLES = 'examples/public-ids';
const ID = '900710334548443136';
const FOLDER = join(__dirname, '../support/boundary');
const modules = join(FOLDER, 'node_modules');
const LENGTH = 26;

const [first, last] = [vectors[0], vectors.at(-1)];
const key = toBase64(KEY);
/** Texts that are no key. */
const BAD_KEYS = ['', 'x', KEY.slice(2), toBase64(KEY.slice(2)), `${key}AAAA`, key.slice(1)];
const environment = { datacenterId: '1', workerId: '3', PORT: '0', PUBLIC_ID_KEY: key };

const orders = publicIds({ kind: 'order', key });
const TEXT = orders.encode(ID);
const ROTATED = publicIds({ kind: 'order', key: otherKey }).encode(ID);

/** Texts that decode to no ID of an order. */
const BAD = [
  ...[
    TEXT.slice(0, -1) + (TEXT.endsWith('1') ? '0' : '1'),
    TEXT.toUpperCase(),
    TEXT.slice(0, -1),
    `${TEXT}0`,
    ID,
    '',
  ],
  ...[TEXT.slice(6), `user_${TEXT.slice(6)}`, publicIds({ kind: 'user', key }).encode(ID)],
  ...[`order_z${TEXT.slice(7)}`, `order_${'o'.repeat(LENGTH)}`, `order_${'\u0660'.repeat(LENGTH)}`],
  publicIds({ kind: 'order', key: otherKey }).encode(ID),
];

/** By what a block imports: code behind it that asks it about texts. */
const PROBES = {
  express: `
    const url = \`http://127.0.0.1:\${server.address().port}/orders/\`;
    await ask(async (text) => {
      const answer = await fetch(url + encodeURIComponent(text));
      return answer.status === 200 ? (await answer.json()).id : undefined;
    });
    server.close();`,
  graphql: `
    import { GraphQLNonNull, GraphQLObjectType, GraphQLSchema, graphql } from 'graphql';
    const same = {
      type: OrderId,
      args: { id: { type: new GraphQLNonNull(OrderId) } },
      resolve: (_: unknown, { id }: any) => {
        if (typeof id !== 'bigint') throw new Error(typeof id);
        return id;
      },
    };
    const schema = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { same } }) });
    const variables = 'query ($id: OrderId!) { same(id: $id) }';
    await ask(async (id: string) => {
      const [one, other] = [
        await graphql({ schema, source: variables, variableValues: { id } }),
        await graphql({ schema, source: \`{ same(id: \${JSON.stringify(id)}) }\` }),
      ];
      if (JSON.stringify(one.data) !== JSON.stringify(other.data)) throw new Error(id);
      return one.data?.same as any;
    });
    for (const literal of ['5', 'true', '[5]', '{ id: 5 }', 'five']) {
      const { errors } = await graphql({ schema, source: \`{ same(id: \${literal}) }\` });
      if (errors === undefined) throw new Error(literal);
    }`,
};

/** Asserts that a way in gives the good text back, and undefined for all others. */
const ASK = (type) => `
  const ask = async (answer${type}) => {
    if ((await answer('${TEXT}')) !== '${TEXT}') throw new Error('it refuses ${TEXT}');
    for (const text of ${JSON.stringify(BAD)}) {
      if ((await answer(text)) !== undefined) throw new Error('it takes ' + text);
    }
  };`;

const isSql = ({ language }) => language === 'sql';
const ENDINGS = { py: 'python', go: 'go', sql: 'sql', ts: 'ts' };
/** The files of the examples, as blocks that have a name, but no line. */
const files = readdirSync(join(__dirname, '../..', EXAMPLES)).map((name) => ({
  page: PAGE,
  name,
  language: ENDINGS[name.split('.').at(-1)],
  code: readFileSync(join(__dirname, '../..', EXAMPLES, name), 'utf8'),
  given: '',
}));
/** They have texts of the published key, which snowdrift refuses. */
const blocks = [...blocksOf(PAGE), ...files].map((block) =>
  // It has its key.
  isSql(block) ? block : { ...block, code: withOwnKey(block.code) },
);
const done = ['js', 'sh', ...Object.values(ENDINGS)];
const ofLanguage = (...names) => blocks.filter(({ language }) => names.includes(language));

test('all blocks are run', () => {
  assert.deepEqual([...new Set(blocks.map(({ language }) => language))].sort(), done.sort());
});

test('the table of vectors is that of the tests', () => {
  const page = readFileSync(join(__dirname, '../..', FORMAT), 'utf8');
  const keys = [first.key, last.key];
  for (const [n, one] of keys.entries())
    assert.ok(page.includes(`- Key ${n + 1}: \`${one}\` in hex`));
  assert.ok(page.includes(`in hex, \`${toBase64(first.key)}\` in base64`));
  const rows = [...page.matchAll(/^\| (\d) \| `(\w+)` \| (\d+) \| `(\w+)` \|$/gm)];
  assert.ok(rows.length > 5);
  for (const [row, n, kind, id, text] of rows) {
    const isRow = (one) => one.key === keys[n - 1] && one.kind === kind && one.id === id;
    assert.equal(vectors.find(isRow)?.text, text, row);
  }
});

const probed = new Set();
for (const block of ofLanguage('js', 'ts')) {
  const name = Object.keys(PROBES).find((of) => block.code.includes(` from '${of}'`));
  const skip = name === undefined ? undefined : (gate ?? missingPackages(FOLDER, '--boundary'));
  if (name !== undefined) probed.add(name);
  const title = name ?? 'JavaScript';
  const run = (change = (code) => code) => {
    const probe = ASK(block.language === 'ts' ? ': (text: string) => Promise<unknown>' : '');
    const then = name === undefined ? '' : `${probe}${PROBES[name]}`;
    const given = { ...block, code: change(block.code + then) };
    const env = { ...environment, NODE_PATH: modules };
    return runProgram(given, env, name === undefined ? {} : { modules });
  };
  test(`${block.name ?? `line ${block.line}`}, ${title}`, { skip }, () => run());
  if (name === 'graphql') {
    test('graphql 16', { skip }, () =>
      run((code) => code.replaceAll("from 'graphql'", "from 'graphql-16'")),
    );
  }
}

test('every framework has a block', () => {
  assert.deepEqual([...probed].sort(), Object.keys(PROBES).sort());
});

for (const block of ofLanguage('sh')) {
  test(`line ${block.line}, sh`, { skip: gate }, () => runShell(block, environment));
}

/** Runs a program of another language in a folder of its own; answers what it printed. */
async function runElsewhere(command, args, file, code) {
  const cwd = mkdtempSync(join(tmpdir(), 'snowdrift-public-'));
  try {
    writeFileSync(join(cwd, file), code);
    const lines = vectors.map((one) => [toBase64(one.key), one.kind, one.id, one.text].join('\t'));
    writeFileSync(join(cwd, 'vectors'), lines.join('\n'));
    writeFileSync(join(cwd, 'bad'), BAD.join('\n'));
    const env = { ...process.env, ...environment };
    const { stdout } = await promisify(execFile)(command, [...args, file], { cwd, env });
    return stdout;
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

/** What the comments of a program say that it prints. */
const printedBy = (code, comment) =>
  [
    ...code.matchAll(
      new RegExp(`^.*Print.*\\) ${comment} (.*)$|^print\\(.*\\) {1,2}${comment} (.*)$`, 'gim'),
    ),
  ]
    .map(([, one, other]) => `${one ?? other}\n`)
    .join('');

const IN_PYTHON = `
for line in open('vectors', encoding='utf8').read().split('\\n'):
    spelt, kind, id, text = line.split('\\t')
    keys = [read_key(spelt)]
    assert encode(int(id), kind)[-26:] == text[-26:], line
    assert decode(encode(int(id), kind), kind) == int(id), line

def refuses(call, value):
    try:
        call(value)
    except ValueError:
        return
    raise AssertionError(repr(value))

keys = [read_key(text) for text in '${otherKey},${key}'.split(',')]
assert encode(${ID}, 'order') == '${ROTATED}'
assert decode('${ROTATED}', 'order') == decode('${TEXT}', 'order') == ${ID}
keys = [read_key('${key}')]
for text in open('bad', encoding='utf8').read().split('\\n'):
    refuses(lambda text: decode(text, 'order'), text)
for text in ${JSON.stringify(BAD_KEYS)}:
    refuses(read_key, text)
for id in [-1, 2**63, 2**63 + 5, 2**64]:
    refuses(lambda id: encode(id, 'order'), id)
print('all')
`;

const IN_GO = `
func init() {
	vectors, _ := os.ReadFile("vectors")
	for _, line := range strings.Split(string(vectors), "\\n") {
		fields := strings.Split(line, "\\t")
		keys, _ := readKeys(fields[0])
		var id int64
		fmt.Sscan(fields[2], &id)
		text, err := encode(keys, fields[1], id)
		if err != nil || text[len(text)-26:] != fields[3][len(fields[3])-26:] {
			panic(line)
		}
		decoded, err := decode(keys, fields[1], text)
		if err != nil || decoded != id {
			panic(line)
		}
	}
	rotated, _ := readKeys("${otherKey},${key}")
	text, _ := encode(rotated, "order", ${ID})
	old, err := decode(rotated, "order", "${TEXT}")
	if text != "${ROTATED}" || old != ${ID} || err != nil {
		panic(text)
	}
	for _, bad := range []string{${BAD_KEYS.map((one) => JSON.stringify(one))}} {
		if _, err := readKeys(bad); err == nil {
			panic(bad)
		}
	}
	keys, _ := readKeys("${key}")
	if _, err := encode(keys, "order", -1); err == nil {
		panic(-1)
	}
	bad, _ := os.ReadFile("bad")
	for _, line := range strings.Split(string(bad), "\\n") {
		if _, err := decode(keys, "order", line); err == nil {
			panic(line)
		}
	}
	fmt.Println("all")
}
`;

const has = (...command) => spawnSync(...command, { stdio: 'ignore' }).status === 0;
/** That of Debian, where another one comes first and lacks the package. */
const findPython = () =>
  ['python3', '/usr/bin/python3'].find((one) => has(one, ['-c', 'import cryptography']));
const python = gate === undefined ? findPython() : undefined;
const noPython =
  gate ?? (python ? undefined : skipped("Python's package cryptography is not installed"));
const noGo = storm ?? (has('go', ['version']) ? undefined : 'Go is not installed');

for (const { code } of ofLanguage('python')) {
  test('Python', { skip: noPython }, async () => {
    const printed = printedBy(code, '#');
    assert.equal(await runElsewhere(python, [], 'page.py', code + IN_PYTHON), `${printed}all\n`);
    assert.equal(printed, `${TEXT}\n${ID}\n`);
  });
}

for (const { code } of ofLanguage('go')) {
  test('Go', { skip: noGo }, async () => {
    const printed = printedBy(code, '//');
    assert.equal(await runElsewhere('go', ['run'], 'page.go', code + IN_GO), `all\n${printed}`);
    assert.equal(printed, `${TEXT}\n${ID}\n`);
  });
}

describe('SQL', { skip: gate ?? missing('postgres') }, () => {
  test('PostgreSQL with pgcrypto', async () => {
    const server = await Server.start('postgres');
    const client = new Client({ connectionString: server.url });
    try {
      for (const block of ofLanguage('sql')) await runSql(block, { DATABASE_URL: server.url });
      await client.connect();
      const ask = async (sql, values) =>
        (await client.query({ text: sql, values, rowMode: 'array' })).rows[0];
      for (const { key: hex, kind, id, text } of vectors) {
        const bytes = Buffer.from(hex, 'hex');
        const [spelt] = await ask('SELECT public_id($1, $2, $3)', [id, kind, bytes]);
        assert.equal(spelt.slice(-LENGTH), text.slice(-LENGTH));
        assert.deepEqual(await ask('SELECT public_id_to_id($1, $2, $3)', [spelt, kind, bytes]), [
          id,
        ]);
      }
      const bytes = Buffer.from(key, 'base64');
      for (const text of BAD) {
        assert.deepEqual(
          await ask('SELECT public_id_to_id($1, $2, $3)', [text, 'order', bytes]),
          [null],
          text,
        );
      }
      const toPublic = 'SELECT public_id($1, $2, $3)';
      const toId = 'SELECT public_id_to_id($1, $2, $3)';
      for (const bad of [
        ...['', '\x01', key, KEY].map((text) => Buffer.from(text)),
        ...[bytes.subarray(1), Buffer.concat([bytes, Buffer.alloc(1)]), Buffer.alloc(0)],
      ]) {
        assert.deepEqual(await ask(toPublic, [ID, 'order', bad]), [null]);
        assert.deepEqual(await ask(toId, [TEXT, 'order', bad]), [null]);
      }
      assert.deepEqual(await ask(toPublic, [-1, 'order', bytes]), [null]);
      // A long text takes no time.
      await client.query("SET statement_timeout = '2s'");
      const long = "SELECT public_id_to_id(repeat('z', 50000000), $1, $2)";
      assert.deepEqual(await ask(long, ['order', bytes]), [null]);
      await client.query("SET search_path = ''");
      const elsewhere = 'SELECT public.public_id_to_id(public.public_id($1, $2, $3), $2, $3)';
      assert.deepEqual(await ask(elsewhere, [ID, 'order', bytes]), [ID]);
    } finally {
      await client.end();
      await server.stop();
    }
  });
});
