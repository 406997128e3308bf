'use strict';
// Every block and validator of docs/boundaries.md, in its framework: it prints what it says, and takes IDs and no other value.

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
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

const PAGE = 'docs/boundaries.md';
const blocks = blocksOf(PAGE);
const text = readFileSync(join(__dirname, '../..', PAGE), 'utf8');

/** What the page says to write, by the first column of its table of validators. */
const cells = Object.fromEntries(
  Array.from(text.matchAll(/^\| (\w+).* \| `([^`]+)` \|$/gm), ([, ...row]) => row),
);

/** By validator of the table: a program with the table's code. */
const FRAMES = {
  zod: `import { z } from 'zod';
    const User = z.object({ id: ${cells.zod} });`,
  valibot: `import * as v from 'valibot';
    const User = v.object({ id: ${cells.valibot} });`,
  ArkType: `import { type } from 'arktype';
    const User = type({ id: ${cells.ArkType} });`,
  tRPC: `import { initTRPC } from '@trpc/server';
    const t = initTRPC.create();
    const user = ${cells.tRPC}.query(({ input }) => 'user ' + input);
    const caller = t.createCallerFactory(t.router({ user }))({});`,
};

/** By what a block imports, or by validator of the table: code behind it that asks it about each value. */
const PROBES = {
  express: `
    app.use(express.json());
    app.post('/users', ({ body }, res) => res.sendStatus(userId.is(body.friend) ? 200 : 400));
    const server = app.listen(0);
    const url = \`http://127.0.0.1:\${server.address().port}/users\`;
    await probe((friend) => isGood(url, { friend }));
    await probe((id) => isGood(\`\${url}/\${encodeURIComponent(id)}\`), { isText: true });
    const answer = await (await fetch(\`\${url}/900710334548459520\`)).text();
    if (answer !== '{"id":"900710334548459520"}' && !isForeign) throw new Error(answer);
    server.close();`,
  tRPC: `
    await probe((id: any) => caller.user(id).then(() => true, () => false), { isWithin: true });`,
  zod: 'await probe((id: unknown) => User.safeParse({ id }).success, { isWithin: true });',
  valibot: 'await probe((id: unknown) => v.is(User, { id }), { isWithin: true });',
  ArkType: `
    await probe((id: unknown) => User.allows({ id }), { isWithin: true });
    const Embedded = type({ id: userId });
    await probe((id: unknown) => !(Embedded({ id }) instanceof type.errors), { isWithin: true });
    if (!Embedded.allows({ id: 5 })) throw new Error('allows() of ArkType refuses: the page says not');`,
  'class-validator': `
    import 'reflect-metadata';
    import { validate } from 'class-validator';
    const dto = Object.assign(new CreateUser(), { friend: '007', groups: ['5', '6'] });
    const [error] = await validate(dto);
    if (error?.constraints?.isId !== 'friend must be an ID') throw error;
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
  fastify: `
    const post = (id: unknown) => app.inject({ method: 'POST', url: '/users', payload: { id } as object });
    await probe(async (id: unknown) => {
      const { statusCode, body } = await post(id);
      if (statusCode !== 400 && body !== JSON.stringify({ id })) throw new Error(body);
      return statusCode === 200;
    });`,
  graphql: `
    import { GraphQLID, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, graphql } from 'graphql';
    const query = new GraphQLObjectType({
      name: 'Query',
      fields: {
        same: {
          type: Snowflake,
          args: { id: { type: new GraphQLNonNull(Snowflake) } },
          resolve: (_, { id }) => BigInt(id),
        },
      },
    });
    const schema = new GraphQLSchema({ query });
    const source = 'query ($id: Snowflake!) { same(id: $id) }';
    await probe(async (id: any) => {
      const { data, errors } = await graphql({ schema, source, variableValues: { id } });
      if (errors === undefined && data?.same !== id) throw new Error(JSON.stringify(data));
      return errors === undefined;
    });
    const ask = (literal: string) => graphql({ schema, source: \`{ same(id: \${literal}) }\` });
    if (!isForeign && (await ask('"900710334548459520"')).errors) throw new Error('a literal ID');
    for (const literal of ['5', '"007"', '5.0', 'five', 'true', '[5]', '{ id: 5 }']) {
      if ((await ask(literal)).errors === undefined) throw new Error(literal);
    }
    if (GraphQLID.parseValue(5) !== '5' || GraphQLID.parseValue('x') !== 'x') {
      throw new Error('the built-in ID refuses numbers or text: the page says not');
    }`,
};

/** By validator: whether it takes a number of a layout of 53 bits. */
const NUMBERS = {
  zod: '(id: any) => User.safeParse({ id }).success',
  valibot: '(id: any) => v.is(User, { id })',
  ArkType: '(id: any) => User.allows({ id })',
};

const environment = { datacenterId: '1', workerId: '3', PORT: '0', NODE_PATH: modules };

const skip = missingPackages(FOLDER, '--boundary');

/** @param change returns the program's text changed */
function run({ language, code, probe }, { change = (whole) => whole, isForeign = false } = {}) {
  const url = language === 'ts' ? `'${PROBE}' as string` : `'${PROBE}'`;
  const asked = `const { isGood, prober } = await import(${url});
    const isForeign = ${isForeign};
    const probe = prober(isForeign);
    void isGood; void isForeign; void probe;
    ${probe}\n`;
  const program = change(probe === undefined ? code : code + asked);
  return runProgram({ page: PAGE, language, code: program }, environment, { modules });
}

describe(PAGE, { skip, concurrency: 2 }, () => {
  const ofLanguage = (...names) => blocks.filter(({ language }) => names.includes(language));

  const withLayout = (code) =>
    code.replace(/idSchema(<'User'>)?\(\)/, "idSchema$1({ layout: 'node' })");

  const programs = new Map(
    Object.entries(FRAMES).map(([name, frame]) => {
      const code = `import { idSchema } from 'snowdrift/schema';
        const userId = idSchema<'User'>();
        ${frame}`;
      return [name, { language: 'ts', code, probe: PROBES[name] }];
    }),
  );
  for (const { language, code, line } of ofLanguage('js', 'ts')) {
    const name = Object.keys(PROBES).find((of) => code.includes(` from '${of}'`));
    if (name === undefined) test(`line ${line}`, () => run({ language, code }));
    else programs.set(name, { language, code, probe: PROBES[name] });
  }

  for (const [name, program] of programs) {
    test(`${name} takes IDs and nothing else`, () => run(program));
    test(`${name} takes the IDs of a layout and nothing else`, () => {
      assert.notEqual(withLayout(program.code), program.code);
      return run(program, { change: withLayout, isForeign: true });
    });
  }

  for (const [name, takes] of Object.entries(NUMBERS)) {
    const probe = `
      const small = 57891234567890;
      for (const id of [0, small]) if (!(${takes})(id)) throw new Error(\`\${id}\`);
      for (const id of [String(small), BigInt(small), 2 ** 53, -1, 0.5, NaN, null] as any[]) {
        if ((${takes})(id)) throw new Error(\`\${typeof id} \${id}\`);
      }`;
    const change = (code) =>
      code
        .replace("idSchema<'User'>()", "idSchema<'User'>({ layout: 'safe', as: 'number' })")
        .replace(/(?<=[zv]\.)string(?=\(\))|(?<=type\(')string/, 'number');
    test(`${name} takes numbers of a layout of 53 bits`, () =>
      run({ ...programs.get(name), probe }, { change }));
  }

  test('graphql 16', () => {
    const change = (code) => code.replaceAll("from 'graphql'", "from 'graphql-16'");
    return run(programs.get('graphql'), { change });
  });

  test('fastify with coercion takes numbers', () => {
    const change = (code) => code.replace('coerceTypes: false', "coerceTypes: 'array'");
    const probe = `
      const { statusCode } = await app.inject({ method: 'POST', url: '/users', payload: { id: 5 } });
      if (statusCode !== 200) throw new Error('coercion does no harm: the page says it does');`;
    return run({ ...programs.get('fastify'), probe }, { change });
  });

  test('NestJS on Express, with the pipe for IDs and the setting of the page', () => {
    const [, setting] = /`(app\.getHttpAdapter\(\)[^`]+)`/.exec(text);
    const code = `
      import { Controller, Get, Module, Param } from '@nestjs/common';
      import { NestFactory } from '@nestjs/core';
      import { ParseSnowFlakePipe } from 'snowdrift/nestjs';

      @Controller('users')
      class Users {
        @Get(':id')
        find(@Param('id', ParseSnowFlakePipe) id: string) {
          return { id: BigInt(id) };
        }
      }

      @Module({ controllers: [Users] })
      class AppModule {}

      const app = await NestFactory.create(AppModule, { logger: false });
      const replacer = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
      ${setting};
      await app.listen(0);`;
    const probe = `
      const url = \`\${await app.getUrl()}/users\`;
      await probe((id: string) => isGood(\`\${url}/\${encodeURIComponent(id)}\`), { isText: true });
      const answer = await (await fetch(\`\${url}/900710334548459520\`)).text();
      if (answer !== '{"id":"900710334548459520"}') throw new Error(answer);
      await app.close();`;
    return run({ language: 'ts', code, probe });
  });

  test('every framework has a block, or a row of the table', () => {
    assert.deepEqual([...programs.keys()].sort(), Object.keys(PROBES).sort());
    assert.deepEqual(Object.keys(cells).sort(), Object.keys(FRAMES).sort());
  });

  test("decorators see a property of the type Id<'User'> as a string", () => {
    const code = `
      import 'reflect-metadata';
      import type { Id } from 'snowdrift';
      const note = (target: object, name: string) =>
        console.log(Reflect.getMetadata('design:type', target, name).name); // String
      class User { @note id!: Id<'User'> }
      void User;\n`;
    return run({ language: 'ts', code });
  });

  test('the OpenAPI schema, by Ajv, with its format and without', async () => {
    const Ajv = require(join(modules, 'ajv'));
    const { prober } = await import(PROBE);
    const [{ code }] = ofLanguage('yaml');
    const { Id } = yaml.parse(code).components.schemas;
    const known = new Ajv({ strict: true });
    known.addFormat('snowflake', idSchema().is);
    await prober()(known.compile(Id), { isWithin: true });
    const unknown = new Ajv({ validateFormats: false }).compile(Id);
    await prober()((id) => unknown(id) && BigInt(id) < 2n ** 63n, { isWithin: true });
  });
});
