import type { SnowFlake } from '../../index';

/**
 * An extension for clients of Prisma 7. Every row that a query creates gets a SnowFlake as its ID.
 *
 * ```ts
 * const prisma = new PrismaClient({ adapter }).$extends(withSnowFlake());
 * ```
 *
 * ```prisma
 * model Author {
 *   id    BigInt @id @default(dbgenerated())
 *   books Book[]
 * }
 * ```
 *
 * `@default(dbgenerated())` makes the ID optional in the generated types, and gives the column no default. So
 * the database refuses rows that bypass this extension (raw SQL, the original client). With
 * `@default(autoincrement())` it would number them 1, 2, 3.
 *
 * The extension generates IDs for `create`, `createMany`, `createManyAndReturn` and `upsert`, and for rows that
 * these and `update` create in relations, at any depth: `create`, `createMany`, `connectOrCreate`, `upsert`.
 * It keeps IDs that you set, and does not change your arguments. It ignores models without a single `@id`
 * field (`@@id`). One form may lack an ID: the `update` of a single related row as `{ where, data }`, if its
 * model also has a field named `data`.
 *
 * A `String @id` sorts only while IDs have equal length. The process gets a warning in the year before that ends,
 * `SNOWFLAKE_TEXT_IDS`.
 *
 * @throws `ERR_SNOWFLAKE_CONFIG` Prisma 7 did not generate the client, or it has no such model
 */
export function withSnowFlake(options?: PrismaSnowFlakeOptions): PrismaSnowFlakeExtension;

/** Options of {@link withSnowFlake}. */
export interface PrismaSnowFlakeOptions {
  /**
   * Generates the IDs. Default: the default instance at the time of the query. That may be a lease: see
   * `SnowFlake.use()` and `SnowFlake.ready()`.
   */
  flake?: Pick<SnowFlake, 'nextId' | 'nextIdString'>;
  /**
   * The names of the models that get IDs. Default: all whose `@id` is a `BigInt`. Name those with a
   * `String @id` here.
   */
  models?: readonly string[];
}

/** The argument of `$extends()`. It adds nothing to the client's types. */
export type PrismaSnowFlakeExtension = (client: object) => {
  $extends: { extArgs: Record<'result' | 'model' | 'query' | 'client', Record<never, never>> };
};
