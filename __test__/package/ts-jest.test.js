'use strict';
// Tests as NestJS sets them up: jest with ts-jest, in CommonJS, with the package that `npm pack` makes.

const assert = require('node:assert/strict');
const { mkdirSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, describe, test } = require('node:test');

require('../support/own-directory.js');
const { Server, missing } = require('../support/lease/servers.js');
const { Scratch, skipped } = require('../support/package/scratch.js');
const { pack } = require('../support/package/tarball.js');

const PACKAGES = [
  ...['jest@30.5.2', 'ts-jest@29.4.15', 'typescript@5.9.3', '@types/jest@30', '@types/node@20'],
  ...['@nestjs/common@11.2.10', '@nestjs/core@11.2.10', '@nestjs/testing@11.2.6'],
  ...['reflect-metadata@0.2.2', 'rxjs@7.8.2', 'typeorm@1.1.1', 'pg@8.23.1'],
];

const CONFIG = {
  compilerOptions: {
    ...{ module: 'commonjs', target: 'es2022', strict: true, skipLibCheck: true },
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
    types: ['node', 'jest'],
  },
};

const TESTS = `
import 'reflect-metadata';
import { Test } from '@nestjs/testing';
import { SnowFlake } from 'snowdrift';
import { SnowFlakeModule } from 'snowdrift/nestjs';
import { PrimarySnowFlakeColumn } from 'snowdrift/typeorm';
import { Column, DataSource, Entity } from 'typeorm';

const url = process.env.DATABASE_URL!;

@Entity()
class Order {
  @PrimarySnowFlakeColumn()
  id!: string;

  @Column()
  name!: string;
}

test('a lease', async () => {
  const flake = await SnowFlake.lease(url, { datacenterId: 1 });
  expect(typeof flake.nextId()).toBe('bigint');
  await flake.close();
}, 300_000);

test('a column', async () => {
  const source = new DataSource({ type: 'postgres', url, entities: [Order], synchronize: true });
  await source.initialize();
  const { id } = await source.getRepository(Order).save({ name: 'first' });
  expect(id).toMatch(/^\\d{18}$/);
  await source.destroy();
}, 300_000);

test('a module with a lease', async () => {
  const imports = [SnowFlakeModule.forRoot({ from: url, datacenterId: 2, isDefault: false })];
  const module = await Test.createTestingModule({ imports }).compile();
  expect(typeof module.get(SnowFlake).nextId()).toBe('bigint');
  await module.close();
}, 300_000);
`;

describe('jest with ts-jest', { skip: skipped() || missing('postgres') }, () => {
  const scratch = new Scratch();
  let server;
  let project;
  before(async () => {
    server = await Server.start('postgres');
    await scratch.publish();
    project = join(await scratch.tools('ts-jest', PACKAGES), '..');
    await scratch.run(project, ['npm', 'install', pack(scratch.directory, '.')]);
  });
  after(async () => {
    await server?.stop();
    scratch.remove();
  });

  test('leases, a module of NestJS and a column of TypeORM', async () => {
    mkdirSync(join(project, 'tests'));
    writeFileSync(join(project, 'tests/app.test.ts'), TESTS);
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(CONFIG));
    const config = { roots: ['tests'], transform: { '\\.ts$': 'ts-jest' } };
    writeFileSync(join(project, 'jest.config.json'), JSON.stringify(config));
    const env = { DATABASE_URL: server.url, datacenterId: '1', workerId: '3' };
    const { stderr } = await scratch.run(project, ['npx', 'jest', '--ci'], env);
    assert.match(stderr, /Tests: +3 passed, 3 total/);
    assert.doesNotMatch(stderr, /not exit/);
  });
});
