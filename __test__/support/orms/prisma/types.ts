// What the extended client still knows of its models. Compiled by prisma.test.js, never run.

import { SnowFlake } from '../../../../index';
import { withSnowFlake } from '../../../../js/orm/prisma';
import type { PrismaClient } from './node_modules/generated';

declare const client: PrismaClient;
const flake = new SnowFlake({ datacenterId: 1, workerId: 3 });
const prisma = client.$extends(withSnowFlake({ flake, models: ['Author'] }));

async function use() {
  const author = await prisma.author.create({ data: { name: 'x', books: { create: [] } } });
  author.id satisfies bigint;
  // @ts-expect-error it is no string
  author.id satisfies string;
  // @ts-expect-error no such field
  await prisma.author.create({ data: { nam: 'x' } });
  const more = prisma.$extends({ model: { author: { answer: () => 42 } } });
  more.author.answer() satisfies number;
  await prisma.$transaction(async (tx) => {
    (await tx.author.findFirst())?.id satisfies bigint | undefined;
  });
}
void use;
