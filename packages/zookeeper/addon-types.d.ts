// The addon's functions and classes. Made by scripts/native-types.mjs of src/, for the compiler only: no package has this file.

/** A change of one node. All of a list are made, or none. */
export interface Change {
  /** What to do. */
  kind: 'create' | 'createEphemeral' | 'set' | 'delete';
  /** Which node. */
  path: string;
  /** What it is to hold. */
  data?: string;
}

/** Whether this build has TLS. */
export declare const HAS_TLS: boolean;

/** What became of a list of changes. */
export interface Outcome {
  /** False if a node was not as it should be: then none was made. */
  isDone: boolean;
  /** When a node was set, by the ensemble's clock, Unix ms. */
  time?: number;
}

/** A session with a ZooKeeper ensemble. Ephemeral nodes live as long as it does. It ends with its connection. */
export declare class Session {
  private constructor();
  /** Whether the session is of no more use, so that it is to be closed, and another is needed. */
  hasEnded(): boolean;
  /** Ends the session, and with it its ephemeral nodes. */
  close(): void;
  /** Makes a node and those above it, unless they are there. */
  make(path: string): Promise<void>;
  /** What a node holds, as UTF-8; null if there is none. */
  get(path: string): Promise<string | null>;
  /** The names of a node's children; none if there is no such node. */
  children(path: string): Promise<Array<string>>;
  /** Makes all changes, in one step; or none of them, if a node is not as it should be. */
  change(changes: Array<Change>): Promise<Outcome>;
  /** Writes to a node; returns when that was by the ensemble's clock, Unix ms. */
  touch(path: string): Promise<number>;
}

/** Certificates and a key, in PEM. */
export interface Tls {
  /** Whose certificates a server may have. */
  ca: string;
  /** The client's, if it has one. */
  cert?: string;
  /** The key of that. */
  key?: string;
}

/**
 * Connects to `host:port,host:port/chroot`. The session expires when the ensemble has not heard of it
 * for that long. With a login, which is `user:password`, the nodes that it makes are that user's only.
 */
export declare function connect(
  ensemble: string,
  sessionTimeoutMs: number,
  login?: string | undefined | null,
  tls?: Tls | undefined | null,
): Promise<Session>;
