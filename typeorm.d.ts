/**
 * A primary column whose IDs are SnowFlakes, for TypeORM 0.3 and 1. In the database it is a `bigint`, on
 * SQLite a `varchar(20)`; in entities a string, always:
 *
 * ```ts
 * @Entity()
 * class User {
 *   @PrimarySnowFlakeColumn()
 *   id: string
 * }
 * ```
 *
 * An ID is drawn before an insert, whatever the way in: `save` and `insert` of instances and of plain
 * objects, the query builder, `upsert`, cascades, inheritance. One that was set is left as it is. An
 * insert that is told `callListeners(false)` draws none.
 *
 * In entities and conditions an ID may also be given as a bigint (not to `delete(id)` and `update(id)`,
 * which TypeORM itself refuses: use `{ id }` or a string). A number is refused with
 * `ERR_SNOWFLAKE_INVALID_ID`, since above 2^53, 24.9 days after the epoch, it is another ID.
 *
 * Columns that refer to such a column (foreign keys, junction tables) get its type. A DataSource that
 * would read IDs as numbers (`parseInt8: true`, `supportBigNumbers: false`) is refused by `initialize()`
 * with `ERR_SNOWFLAKE_CONFIG`, which says which line to change. On SQLite, a column of an existing table
 * that is an INTEGER there must be migrated to `varchar(20)`: an ID that was rounded is refused when it
 * is read.
 *
 * Importing this extends `DataSource`, since decorators do not know for which database they are used.
 */
export function PrimarySnowFlakeColumn(options?: PrimarySnowFlakeColumnOptions): PropertyDecorator;

export interface PrimarySnowFlakeColumnOptions {
  /** The column's name in the database. Default: the property's. */
  name?: string;
  comment?: string;
  /**
   * Draws an ID. Default: `SnowFlake.nextIdString`, of the process's default instance. With a lease, which
   * comes later than the decorator: `() => flake.nextIdString()`.
   */
  nextIdString?: () => string;
}
