'use strict';
// Every block of docs/boundaries.md, in its framework: it prints what it says, and takes IDs and no other value.

const assert = require('node:assert/strict');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');
const { describe, test } = require('node:test');

const yaml = require('yaml');

require('../support/own-directory.js');
const { missingPackages } = require('../support/installed.js');
const { blocksOf, runProgram } = require('../support/page.js');
const { idSchema } = require('../../js/schema.js');

const FOLDER = join(__dirname, '../support/boundary');
const PROBE = pathToFileURL(join(FOLDER, 'probe.mjs')).href;
const modules = join(FOLDER, 'node_modules');

/** By what a block imports: code behind it that asks it about each value. */
const PROBES = {
  express: `
    const { port } = server.address();
    const url = \`http://127.0.0.1:\${port}/users\`;
    await probe((friend) => isGood(url, { friend }));
    await probe((id) => isGood(\`\${url}/\${encodeURIComponent(id)}\`), { isText: true });
    server.close();`,
  '@trpc/server': `
    await probe((id: any) => caller.user(id).then(() => true, () => false), { isWithin: true });`,
  zod: 'await probe((id: unknown) => User.safeParse({ id }).success, { isWithin: true });',
  valibot: 'await probe((id: unknown) => v.is(User, { id }), { isWithin: true });',
  arktype: `
    await probe((id: unknown) => User.allows({ id }), { isWithin: true });
    const Embedded = type({ id: userId });
    await probe((id: unknown) => !(Embedded({ id }) instanceof type.errors), { isWithin: true });`,
  'class-validator': `
    const isRight = async (fields: object) =>
      (await validate(Object.assign(new CreateUser(), fields))).length === 0;
    await probe((friend: any) => isRight({ friend }), { isWithin: true });
    await probe((id: any) => isRight({ friend: '9', groups: ['9', id] }), { isWithin: true });
    const { ValidationPipe } = await import('@nestjs/common');
    const passes = (friend: any, transformOptions = {}) =>
      new ValidationPipe({ transform: true, transformOptions })
        .transform({ friend, groups: [] }, { type: 'body', metatype: CreateUser })
        .then(() => true, () => false);
    await probe(passes);
    if (!(await passes(900710334548459520, { enableImplicitConversion: true }))) {
      throw new Error('conversion does no harm: the page says it does');
    }`,
  '@nestjs/core': `
    const url = \`\${await app.getUrl()}/users\`;
    await probe((id: string) => isGood(\`\${url}/\${encodeURIComponent(id)}\`), { isText: true });
    const answer = await (await fetch(\`\${url}/900710334548459520\`)).text();
    if (answer !== '{"id":"900710334548459520"}') throw new Error(answer);
    await app.close();`,
  fastify: `
    await probe(async (id: unknown) => {
      const { statusCode, body } = await post(id);
      if (statusCode !== 400 && body !== JSON.stringify({ id })) throw new Error(body);
      return statusCode === 200;
    });`,
  graphql: `
    const source = 'query ($id: Snowflake!) { same(id: $id) }';
    await probe(async (id: any) => {
      const { data, errors } = await graphql({ schema, source, variableValues: { id } });
      if (errors === undefined && data?.same !== id) throw new Error(JSON.stringify(data));
      return errors === undefined;
    });
    for (const literal of ['5', '"007"', '5.0', 'five', 'true', '[5]', '{ id: 5 }']) {
      const { errors } = await graphql({ schema, source: \`{ same(id: \${literal}) }\` });
      if (errors === undefined) throw new Error(literal);
    }
    const { GraphQLID } = await import('graphql');
    if (GraphQLID.parseValue(5) !== '5' || GraphQLID.parseValue('x') !== 'x') {
      throw new Error('the built-in ID refuses numbers or text: the page says not');
    }`,
};

/** By the same: whether a validator of numbers takes one. */
const NUMBERS = {
  zod: '(id: any) => User.safeParse({ id }).success',
  valibot: '(id: any) => v.is(User, { id })',
  arktype: '(id: any) => User.allows({ id })',
};

const environment = { datacenterId: '1', workerId: '3', PORT: '0', NODE_PATH: modules };

const skip = missingPackages(FOLDER, '--boundary');

const blocks = blocksOf('docs/boundaries.md');

describe('docs/boundaries.md', { skip, concurrency: 2 }, () => {
  const ofLanguage = (...names) => blocks.filter(({ language }) => names.includes(language));

  /** Runs a block, and then its probe. @param change returns the block's code changed */
  function run(block, probe, { change = (code) => code, foreign = false } = {}) {
    const url = block.language === 'ts' ? `'${PROBE}' as string` : `'${PROBE}'`;
    const then = `const { isGood, prober } = await import(${url}); void isGood;
      const probe = prober(${foreign}); ${probe}`;
    const code = change(block.code) + (probe === undefined ? '' : then);
    return runProgram({ ...block, code }, environment, { modules });
  }

  const withLayout = (code) =>
    code
      .replace('idSchema({ as', "idSchema({ layout: 'node', as")
      .replace("'id', ParseSnowFlakePipe", "'id', new ParseSnowFlakePipe({ layout: 'node' })")
      .replace(/idSchema(<'User'>)?\(\)/, "idSchema$1({ layout: 'node' })");

  /** The block without what it prints, for numbers. */
  const forNumbers = (code) =>
    code
      .replace(/idSchema(<'User'>)?\(.*?\)/, "idSchema$1({ layout: 'safe', as: 'number' })")
      .replace(/string(?=\(\)|'\))/, 'number')
      .replaceAll(/\bId\b/g, 'NumberId')
      .replaceAll(/^console\.log.*\n/gm, '');

  const probed = new Set();
  for (const block of ofLanguage('js', 'ts')) {
    const name = Object.keys(PROBES).find((of) => block.code.includes(` from '${of}'`));
    if (name === undefined) {
      test(`line ${block.line}`, () => run(block));
      continue;
    }
    probed.add(name);
    test(`${name} takes IDs and nothing else`, () => run(block, PROBES[name]));
    test(`${name} takes the IDs of a layout and nothing else`, () => {
      assert.notEqual(withLayout(block.code), block.code);
      return run(block, PROBES[name], { change: withLayout, foreign: true });
    });
    if (name in NUMBERS) {
      const probe = `
        const small = 57891234567890;
        for (const id of [0, small]) if (!(${NUMBERS[name]})(id)) throw new Error(\`\${id}\`);
        for (const id of [String(small), BigInt(small), 2 ** 53, -1, 0.5, NaN, null] as any[]) {
          if ((${NUMBERS[name]})(id)) throw new Error(\`\${typeof id} \${id}\`);
        }`;
      test(`${name} takes numbers of a layout of 53 bits`, () =>
        run(block, probe, { change: forNumbers }));
    }
    if (name === 'graphql') {
      const change = (code) => code.replace("from 'graphql'", "from 'graphql-16'");
      test('graphql 16', () => run(block, PROBES[name], { change }));
    }
    if (name === 'fastify') {
      const change = (code) => code.replace('coerceTypes: false', "coerceTypes: 'array'");
      const probe = `const { statusCode } = await post(5);
        if (statusCode !== 200) throw new Error('coercion does no harm: the page says it does');`;
      const quiet = (code) => change(code).replace(/\); \/\/ 400\n/, ');\n');
      test('fastify with coercion takes numbers', () => run(block, probe, { change: quiet }));
    }
  }

  test('every framework has a block', () => {
    assert.deepEqual([...probed].sort(), Object.keys(PROBES).sort());
  });

  test("decorators see a property of the type Id<'User'> as a string", () => {
    const code = `
      import 'reflect-metadata';
      import type { Id } from 'snowdrift';
      const note = (target: object, name: string) =>
        console.log(Reflect.getMetadata('design:type', target, name).name); // String
      class User { @note id!: Id<'User'> }
      void User;\n`;
    return run({ page: blocks[0].page, language: 'ts', code });
  });

  test('the OpenAPI schema, by Ajv, with its format and without', async () => {
    const Ajv = require(join(modules, 'ajv'));
    const { prober } = await import(PROBE);
    const [{ code }] = ofLanguage('yaml');
    const { Id } = yaml.parse(code).components.schemas;
    const known = new Ajv({ strict: true, keywords: ['example'] });
    known.addFormat('snowflake', idSchema().is);
    await prober()(known.compile(Id), { isWithin: true });
    const unknown = new Ajv({ validateFormats: false, keywords: ['example'] }).compile(Id);
    await prober()((id) => unknown(id) && BigInt(id) < 2n ** 63n, { isWithin: true });
  });
});
