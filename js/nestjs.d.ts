import type {
  AssigningStore,
  CachedSnowFlakeOptions,
  LeaseOptions,
  LeaseStore,
  RingOptions,
  SnowFlakeOptions,
  WorkerNodeStore,
} from '../index';

/**
 * Options of the generator. With `from`, `SnowFlake.lease(from, options)` opens it; without `from`, the constructor.
 * Defaults come from the environment: if `SNOWDRIFT_LEASE` names a server, the generator is a lease, too. Passing
 * `from` as undefined, null or empty is `ERR_SNOWFLAKE_CONFIG`.
 */
export type SnowFlakeModuleOptions =
  | (SnowFlakeOptions & { from?: never })
  | (LeaseOptions & { from: string | URL | LeaseStore | AssigningStore | WorkerNodeStore });

export type CachedSnowFlakeModuleOptions =
  | (CachedSnowFlakeOptions & { from?: never })
  | (Omit<LeaseOptions, 'clock'> &
      RingOptions & { from: string | URL | LeaseStore | AssigningStore | WorkerNodeStore });

/** Options of the module itself. */
export interface SnowFlakeModuleExtras {
  /** Whether all modules can inject it without importing this module. Default true. */
  isGlobal?: boolean;
  /**
   * Whether the generator becomes the thread's default instance, as by `SnowFlake.use()`. Static calls,
   * `PrimarySnowFlakeColumn()` and Prisma's extension then use it. Default true. If another default
   * instance is open, the start fails with `ERR_SNOWFLAKE_CONFLICT`. With several generators in one process,
   * pass false to all but one.
   *
   * A start that failed before `onApplicationBootstrap` leaves its default instance open. The next start in the process closes
   * it. If the first one had not failed, it fails then with `ERR_SNOWFLAKE_CONFLICT`, at `onModuleInit`.
   */
  isDefault?: boolean;
}

interface Factory<Options> {
  imports?: unknown[];
  inject?: unknown[];
  // biome-ignore lint/suspicious/noExplicitAny: what is injected is the application's
  useFactory: (...injected: any[]) => Options | Promise<Options>;
}

/** NestJS's own type, without the dependency. */
interface DynamicModule {
  // biome-ignore lint/suspicious/noExplicitAny: as NestJS has it
  module: any;
  global?: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: as NestJS has it
  imports?: any[];
  // biome-ignore lint/suspicious/noExplicitAny: as NestJS has it
  providers?: any[];
  // biome-ignore lint/suspicious/noExplicitAny: as NestJS has it
  exports?: any[];
}

/**
 * A module for NestJS 10, 11 and 12. It provides `SnowFlake`, or `CachedSnowFlake` with `cached: true`, to inject
 * by type:
 *
 * ```ts
 * constructor(private readonly ids: SnowFlake) {}
 * ```
 *
 * It closes the generator at `onApplicationShutdown`: by `app.close()`, and by signals after
 * `app.enableShutdownHooks()`. It releases a lease then, and awaits that.
 * A mock may lack `close()`, or be null.
 */
export class SnowFlakeModule {
  /** Opens the generator with these options; without options, from the environment. */
  static forRoot(
    options?: SnowFlakeModuleExtras &
      (
        | ({ cached?: false } & SnowFlakeModuleOptions)
        | ({ cached: true } & CachedSnowFlakeModuleOptions)
      ),
  ): DynamicModule;

  /**
   * `useFactory` returns the options or a promise of them. If it throws, or returns nothing, the application does not
   * start.
   */
  static forRootAsync(
    options: SnowFlakeModuleExtras &
      (
        | ({ cached?: false } & Factory<SnowFlakeModuleOptions>)
        | ({ cached: true } & Factory<CachedSnowFlakeModuleOptions>)
      ),
  ): DynamicModule;
}
