// The types that the stores share, for the compiler only: no package has this file.

import type { Layout } from '../types.js';
import type {
  AssignRequest,
  CallOptions,
  LeaseRecord,
  LeaseStore,
  SqlStoreOptions,
  StoreOptions,
  WorkerNodeStore,
} from './store.js';

export type { CallOptions, LeaseRecord, LeaseStore, StoreOptions };

type Show = Parameters<NonNullable<LeaseStore['show']>>;
export type Slot = Show[0];
export type Holder = Show[1];

/** A reply of a read. */
export interface ReadReply<Found = LeaseRecord> {
  record: Found | undefined;
  now?: number | undefined;
}

/** A reply of a write. */
export type WriteReply<Found = LeaseRecord> =
  | { isWritten: true; found?: undefined; now?: number | undefined }
  | { isWritten: false; found: Found | undefined; now?: number | undefined };

/** A record of a directory, or the reason that nobody can use its file. */
export type FileRecord = LeaseRecord | { failure: Error; token?: undefined; text?: undefined };

/** What registers of this package have, besides the calls. */
interface Traits {
  readonly name: string;
  readonly mayForget?: boolean;
  readonly bucketSize?: 1 | 8 | 32;
  readonly ttl?: number;
  /** Its name in errors. */
  readonly server?: string;
  readonly isDirectory?: boolean;
  /** Where the record under a key is. */
  placeOf?(key: string): string;
  close?(): Promise<void>;
}

/** The calls of a register. The last argument of each has the signal: an adapter gets that itself. */
interface Calls<Found, Last> {
  now(last: Last): Promise<number>;
  read(key: string, last: Last): Promise<ReadReply<Found>>;
  write(
    key: string,
    record: LeaseRecord,
    before: string | undefined,
    last: Last,
  ): Promise<WriteReply<Found>>;
  show?(slot: Slot, holder: Holder, last: Last): Promise<void>;
  namespaces?(last: Last): Promise<string[]>;
  /** The other schemas of its database that have records. */
  schemas?(last: Last): Promise<string[]>;
  /** The keys of the buckets that a directory has. */
  buckets?(last: Last): Promise<string[]>;
}

/** A store of this package, as its leases and the commands use it. */
export interface Register<Found = LeaseRecord> extends Traits, Calls<Found, CallOptions> {}

/** A store that assigns worker IDs by the rows of a table. */
export interface RowStore extends WorkerNodeStore {
  assignRow(request: RowRequest): Promise<Assigned>;
}

export interface RowRequest extends AssignRequest {
  ttl: number;
  /** The name of this host, for people. */
  host: string;
  /** The start of this process, Unix ms. */
  started: number;
}

/** A worker ID, and the register for its holder. */
export interface Assigned {
  workerId: number;
  register: Register;
}

/** What a lease calls of a store, which may be an application's own: its calls may return anything. */
export interface ForeignStore {
  readonly name: string;
  readonly server?: string;
  read(...values: unknown[]): unknown;
  write(...values: unknown[]): unknown;
  now(...values: unknown[]): unknown;
  show?(...values: unknown[]): unknown;
  namespaces?(...values: unknown[]): unknown;
  schemas?(...values: unknown[]): unknown;
  close?(...values: unknown[]): unknown;
}

/** One whose properties were checked, and do not change. */
export interface CheckedStore extends ForeignStore {
  readonly mayForget: boolean;
  readonly bucketSize: 1 | 8 | 32;
  /** Each process has a worker ID of its own. */
  readonly scope?: 'process';
  readonly assign?: Assign;
}

/** Assigns a worker ID, with a store for its holder. */
export type Assign = (
  request: WantedWorker,
) => Promise<{ workerId: number; register: ForeignStore }>;

export interface WantedWorker extends RowRequest {
  layout: Layout;
}

/** The functions of a store, from which createRegister() makes a register. */
export interface Adapter<Found = LeaseRecord> extends Traits, Calls<Found, AbortSignal> {
  /** Whether what they throw is the application's, but for the errors that they note as a client's. */
  notesErrors?: boolean;
}

// Servers by URLs.

/** Whether an option may have a value; `expected` says which. */
export type Check = ((value: string) => boolean) & { expected?: string };

/** What is known of a server by URL: a file of servers/. */
export interface Server {
  /** How to turn TLS on, for errors. */
  tls: string;
  /** Where its client finds its keys, if a URL never has any: for errors. */
  keys?: string;
  /** The options that its client knows. */
  options: Record<string, Check>;
  /** Further checks. `where`: the URL's name in errors. */
  check?(where: string, url: URL): void;
  /** Opens the store. Throws what is wrong with the URL. */
  connect(url: URL, parts: Parts): Promise<Connection>;
}

/** The parts of a URL: that of the client, the options of the store, and the server's name in errors. */
export interface Parts {
  own: URL;
  options: SqlStoreOptions;
  server: string;
}

/** A store and its connection. */
export interface Connection {
  store: LeaseStore;
  /** Connects, unless it is connected. */
  connected?(): Promise<void>;
  /** The cause of a failed call, if it says more than the call's. */
  causeOf?(): unknown;
  /** Destroys the connection. */
  drop?(): void;
  /** Ends it. */
  end?(): Promise<unknown>;
}

// Clients of SQL databases: what is used of them, since an application may have any of their versions.

/** A column as text. */
export type Text = string | Uint8Array;

/** A row: it has the columns that its statement names. */
export interface Row {
  token: Text;
  text: Text;
  namespace: Text;
  writes: Text;
  now: number | string;
  began?: string;
  home: string | null;
  insertId: number | string;
  // Of a WORKER_NODE table.
  worker: number | string;
  host: unknown;
  port: unknown;
  created: unknown;
}

export type Value = Text | number | undefined;

/**
 * Runs one statement with `?` placeholders until a signal is aborted, in a transaction of its own, or throws. Returns the rows of a
 * SELECT or RETURNING, with its `columns`; of another change as many rows as it has changed, unless the client is a foreign one.
 */
export type Query = (
  text: string,
  values: Value[],
  signal: AbortSignal,
  columns?: string[],
) => Promise<Row[]>;

export type DialectName = 'postgres' | 'mysql' | 'sqlite';

/** Those of servers with clients of their own here. */
export type ServerDialect = Exclude<DialectName, 'sqlite'>;

export interface Dialect {
  /** The first placeholder of a statement, as its clients write it by default. */
  placeholder: Placeholder;
  /** Selects the schema of a table as `home`: where it is, else where it would be created. */
  home(table: string): string;
  /** Selects those of all tables of that name. */
  homes(table: string): string;
  /** The schema of such a table, in a further condition. */
  homeColumn: string;
  quote(name: string): string;
  now: string;
  type(length: number): string;
  textType: string;
  /** A value for a column of names and tokens. */
  toColumn(text: string | undefined): Value;
  /** A parameter before the characters of a column. */
  prepend(column: string, length: number): string;
  /** The bytes of a parameter of hexadecimal digits. */
  toBytes: string;
  /** Selects such a column, and reads what it selects. */
  nameColumn(name: string): string;
  nameOf(column: Text): string;
  /** The same for the text of a record. */
  textColumn: string;
  toText(column: Text): string;
  /** What `text` is sent as. */
  toValue(text: string): string;
  /** Reads one row as new as the call, or fails. */
  lookUp(table: string, columns: string, condition: string): string;
  unlessExists: string;
  returning: string;
  /** Something of the transaction that other transactions of its connection do not have; `OPEN` if it is known to be open. */
  began: string;
  /** A statement that fails with `table is locked` in a transaction. */
  check?: string;
  isDuplicate?(failure: unknown): boolean;
  isMissing(failure: unknown): boolean;
  isConflict(failure: unknown): boolean;
}

/** A client of which only its query function is known. */
export interface ForeignClient {
  isConflict(failure: unknown): boolean;
  isLocked(failure: unknown): boolean;
}

export type Placeholder = '?' | '$1';

/** What is used of a socket. */
export interface Socket {
  emit(...event: unknown[]): boolean;
  destroy(failure?: unknown): void;
}

/** A client that keeps its socket as `stream`. */
export interface Streaming {
  stream?: Socket | null;
}

/** A connection of a pool. */
export interface Pooled {
  connection?: Streaming | null;
  release(): void;
}

export interface PgPool {
  connect(): Promise<PgClient>;
}

export interface PgClient extends Pooled {
  query(query: { text: string; values: Value[]; types: object }): Promise<{ rows: Row[] }>;
  release(isBroken?: boolean): void;
  getTransactionStatus?(): string | null | undefined;
  connection?: PgConnection | null;
}

interface PgConnection extends Streaming {
  on(event: 'readyForQuery', listener: (reply: { status: string }) => void): unknown;
}

/** A pool of `mysql2/promise`; one of `mysql2` has it as `promise()`. */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>;
}

export type MysqlStatement = string | { sql: string; values: Value[] };

/** A connection of `mysql2/promise`. */
export interface MysqlConnection extends Pooled {
  query(statement: MysqlStatement): Promise<[MysqlResult, ...unknown[]]>;
  destroy(): void;
}

/** Of a change; of a SELECT or SHOW the rows. */
export type MysqlResult = Row[] & { serverStatus: number; affectedRows: number; insertId: number };

/** A connection of `mysql2`, or of `mysql`. */
export interface MysqlCallbacks extends Streaming {
  query(
    statement: MysqlStatement,
    callback: (failure: Error | null, result: MysqlResult) => void,
  ): void;
  release(): void;
  destroy(): void;
}
