import type { SnowFlake } from './index';

/**
 * An extension for clients of Prisma 7: every row that a query creates gets a SnowFlake for its ID.
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
 * `@default(dbgenerated())` has the generated types allow that the ID is left out, and gives the column no
 * default. So what does not come through this extension (raw SQL, the client that was extended) is refused
 * by the database, where `@default(autoincrement())` would have it number the rows 1, 2, 3.
 *
 * IDs are drawn for `create`, `createMany`, `createManyAndReturn` and `upsert`, and for what they and
 * `update` create in relations, at any depth: `create`, `createMany`, `connectOrCreate`, `upsert`. An ID that
 * was set is left as it is, and what was passed in is not changed. Models without a single `@id` field
 * (`@@id`) are left alone. One form is not seen through, so an ID may be missing there: the `update` of a
 * single related row in the form `{ where, data }`, if its model has a field called `data`, too.
 *
 * Throws `ERR_SNOWFLAKE_CONFIG` where the client is not one that Prisma 7 has generated, or has no such model.
 */
export function withSnowFlake(options?: PrismaSnowFlakeOptions): PrismaSnowFlakeExtension;

export interface PrismaSnowFlakeOptions {
  /** Draws the IDs. Default: `SnowFlake`, that is the process's default instance. */
  flake?: Pick<SnowFlake, 'nextId' | 'nextIdString'>;
  /**
   * The models that get IDs, by name. Default: all whose `@id` is a `BigInt`. Those with a `String @id` get
   * one only if they are named here.
   */
  models?: readonly string[];
}

/** As `$extends()` takes it. It adds nothing to the client's types. */
export type PrismaSnowFlakeExtension = (client: object) => {
  $extends: { extArgs: Record<'result' | 'model' | 'query' | 'client', Record<never, never>> };
};
