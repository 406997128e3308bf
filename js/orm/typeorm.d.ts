/**
 * A primary column with SnowFlake IDs, for TypeORM 0.3 and 1. In the database it is a `bigint`, which sorts by time.
 * In entities it is always a string:
 *
 * ```ts
 * @Entity()
 * class User {
 *   @PrimarySnowFlakeColumn()
 *   id: string
 * }
 * ```
 *
 * It generates an ID before each insert: by `save` and `insert` of instances and plain objects, the query builder,
 * `upsert`, cascades and inheritance. It keeps an ID that you set. With `callListeners(false)` it generates none.
 *
 * **Upserts.** If `upsert`, `orUpdate` or `orIgnore` meets an existing row, the row keeps its ID. Entity and
 * `identifiers` then hold the row's ID. If it is unknown, `id` is left out, and so is the entry of `identifiers`: always
 * for `orIgnore`, and on databases without RETURNING (MySQL, SQLite) if no row has the conflict's values exactly.
 *
 * **Values.** In entities and conditions an ID may also be a bigint. An entity that is saved gets the string instead.
 * (TypeORM itself refuses a bigint in `delete(id)` and `update(id)`: pass `{ id }` or a string.) Anything else is
 * `ERR_SNOWFLAKE_INVALID_ID`, with entity and property: `''`, `'abc'`, `'-5'`, `'007'`, `'1e3'`, and a number. Above
 * 2^53, reached 24.9 days after the epoch, a number would be another ID.
 *
 * **Types.** Columns that refer to such a column (foreign keys, junction tables) get its type. `initialize()` rejects
 * with `ERR_SNOWFLAKE_CONFIG`, which names the line to change, if a property is declared as a number or a bigint
 * (`id!: bigint`, seen with `emitDecoratorMetadata`) or if the DataSource would read IDs as numbers (`parseInt8: true`,
 * `supportBigNumbers: false`). The compiler refuses such a property of this decorator, too.
 *
 * **SQLite.** With better-sqlite3 and sql.js, integers beyond 2^53 are then strings in all results of the DataSource, raw
 * ones included. Other drivers of SQLite cannot read them exactly: their column is a `varchar(20)`, which sorts only
 * while IDs have equal length. The process gets a warning in the year before that ends, `SNOWFLAKE_TEXT_IDS`. It also
 * warns if better-sqlite3 or sql.js opens a table with `varchar(20)`. To convert such tables:
 *
 * 1. Look for keys that are no IDs, in each table: `SELECT id FROM message WHERE CAST(CAST(id AS INTEGER) AS TEXT) <> id`.
 * 2. Run `npx typeorm migration:generate`, then `npx typeorm migration:run`, or use `synchronize: true`. SQLite converts every
 *    ID and foreign key exactly.
 *
 * Importing this module extends `DataSource` and `InsertQueryBuilder`, since a decorator does not know its database.
 */
export function PrimarySnowFlakeColumn(options?: PrimarySnowFlakeColumnOptions): ColumnDecorator;

export namespace PrimarySnowFlakeColumn {
  /**
   * The same for an `EntitySchema`: `columns: { id: PrimarySnowFlakeColumn.forSchema() }`.
   *
   * @throws as the decorator
   */
  function forSchema(options?: PrimarySnowFlakeColumnOptions): SchemaColumn & { primary: true };
}

/**
 * A column that holds the ID of another row: a foreign key, or a reference without one. It has the type and the values of
 * {@link PrimarySnowFlakeColumn} on each database, checks them in entities and conditions, and generates none:
 *
 * ```ts
 * @Entity()
 * class Book {
 *   @PrimarySnowFlakeColumn()
 *   id: string
 *
 *   @Index()
 *   @SnowFlakeColumn({ nullable: true })
 *   authorId: string | null
 *
 *   @ManyToOne(() => Author)
 *   @JoinColumn({ name: 'authorId' })
 *   author: Author | null
 * }
 * ```
 *
 * `find({ where: { authorId } })` then needs no join. Beside a relation the column has the name that `@JoinColumn` gives. A
 * foreign key that is part of a composite primary key is `@SnowFlakeColumn({ primary: true })`.
 *
 * `initialize()` rejects with `ERR_SNOWFLAKE_CONFIG` if the property is declared as a number or a bigint, or if the relation
 * refers to a column that is neither one of IDs nor a `bigint`.
 *
 * @throws `ERR_SNOWFLAKE_CONFIG` an option is unknown, such as `type`, or wrong
 * @throws `ERR_SNOWFLAKE_INVALID_ID` the `default` is no ID
 */
export function SnowFlakeColumn(options?: SnowFlakeColumnOptions): ColumnDecorator;

export namespace SnowFlakeColumn {
  /**
   * The same for an `EntitySchema`: `columns: { authorId: SnowFlakeColumn.forSchema({ nullable: true }) }`.
   *
   * @throws as the decorator
   */
  function forSchema(options?: SnowFlakeColumnOptions): SchemaColumn & SnowFlakeColumnOptions;
}

/** A decorator of properties that can hold a string. */
type ColumnDecorator = <Entity extends object, Property extends PropertyKey>(
  target: Entity,
  property: HoldsString<Entity, Property> extends true
    ? Property
    : 'declare this property as a string, since it holds one',
) => void;

/** What TypeORM reads of an EntitySchema's column. */
interface SchemaColumn {
  type: 'bigint';
  transformer: { to(value: unknown): unknown; from(value: unknown): unknown };
  name?: string | undefined;
  comment?: string | undefined;
}

/** Whether a property can hold a string. Of a private or protected one, the compiler does not tell. */
type HoldsString<Entity, Property> = Property extends keyof Entity
  ? string extends Entity[Property]
    ? true
    : [Extract<Entity[Property], string>] extends [never]
      ? false
      : true
  : true;

/** Options of {@link SnowFlakeColumn}: those of TypeORM's `@Column` that a column of IDs may have. */
export interface SnowFlakeColumnOptions {
  /** The column's name in the database. Default: the property's name. */
  name?: string;
  /** The column's comment in the database, where it supports one. */
  comment?: string;
  /** Whether it may be null. Default false. */
  nullable?: boolean;
  /** Whether no two rows may have the same ID in it. Default false. */
  unique?: boolean;
  /** Whether it is part of the primary key. Default false. */
  primary?: boolean;
  /** Whether queries select it by default. Default true. */
  select?: boolean;
  /** Whether `save` inserts its value. Default true. */
  insert?: boolean;
  /** Whether `save` changes it. Default true. */
  update?: boolean;
  /** The database's default: an ID, null, or a function that returns SQL. */
  default?: string | bigint | null | (() => string);
}

/** Options of {@link PrimarySnowFlakeColumn}. */
export interface PrimarySnowFlakeColumnOptions {
  /** The column's name in the database. Default: the property's name. */
  name?: string;
  /** The column's comment in the database, where it supports one. */
  comment?: string;
  /**
   * Generates an ID. Default: `SnowFlake.nextIdString`, from the default instance at the time of the insert. That
   * may be a lease: see `SnowFlake.use()` and `SnowFlake.ready()`.
   */
  nextIdString?: () => string;
}
