import type {
  AssigningStore,
  CachedSnowFlake,
  CachedSnowFlakeOptions,
  LeaseOptions,
  LeaseStore,
  RingOptions,
  SnowFlake,
  SnowFlakeOptions,
  WorkerNodeStore,
} from '../index';
import type { Layout, LayoutName } from './id';
import type { Health } from './monitoring';
import type { PublicIds } from './public';

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

/** Options of both pipes, with the names of NestJS's own pipes. */
export interface ParsePipeOptions<As extends 'bigint' | 'number' | 'string'> {
  /** The form of the ID. Default `'string'`, as ORMs and JSON take it. */
  as?: As;
  /** Whether undefined and null pass unchanged, for query parameters that may be missing. Default false. */
  optional?: boolean;
  /** The status of NestJS's exception that is thrown. Default 400, of public IDs 404. */
  errorHttpStatusCode?: number;
  /** Makes the error to throw, instead: for GraphQL, WebSockets and microservices. */
  exceptionFactory?: (message?: string) => unknown;
}

/** Options of {@link ParseSnowFlakePipe}. Passing `layout` or `since` as undefined is `ERR_SNOWFLAKE_CONFIG`. */
export interface ParseSnowFlakePipeOptions<As extends 'bigint' | 'number' | 'string'>
  extends ParsePipeOptions<As> {
  /**
   * The layout of the IDs. An ID is then also refused if it is wider than the layout, or if its time is more than a day in
   * the future. `as: 'number'` needs one of at most 53 bits. Default: any ID passes, 0 to 2^63 - 1.
   */
  layout?: LayoutName | Layout;
  /** The time of the application's first ID, a Date or Unix ms: earlier IDs are refused. Needs `layout`. */
  since?: Date | number;
}

/**
 * A pipe for NestJS 10, 11 and 12 that takes an ID from a path, a query or a body, and throws BadRequestException for
 * anything else: numbers, signs, leading zeros, several values of one name.
 *
 * ```ts
 * find(@Param('id', ParseSnowFlakePipe) id: string)
 * find(@Param('id', new ParseSnowFlakePipe({ as: 'bigint', layout: 'node' })) id: bigint)
 * ```
 *
 * Its answer names the parameter, and does not repeat the value.
 */
export class ParseSnowFlakePipe<As extends 'bigint' | 'number' | 'string' = 'string'> {
  /**
   * @throws `ERR_SNOWFLAKE_CONFIG` an option is unknown or wrong; or the package `@nestjs/common` is missing
   * @throws `ERR_SNOWFLAKE_ARGUMENT` `since` is outside the layout's time
   */
  constructor(options?: ParseSnowFlakePipeOptions<As>);
  transform(value: unknown, metadata?: { readonly data?: string | undefined }): IdForms[As];
}

/**
 * A pipe that takes a public ID and gives the ID. For anything else it throws NotFoundException without a message, so
 * that the answer is that of a row which does not exist: it does not tell whether the text is forged, misspelt or of
 * another kind.
 *
 * ```ts
 * const orders = publicIds({ kind: 'order', key: process.env.PUBLIC_ID_KEY })
 * find(@Param('id', new ParsePublicIdPipe(orders)) id: string)
 * ```
 */
export class ParsePublicIdPipe<As extends 'bigint' | 'string' = 'string'> {
  /**
   * @param ids the result of `publicIds()`
   * @throws `ERR_SNOWFLAKE_CONFIG` `ids` is something else, an option is unknown or wrong, or the package `@nestjs/common`
   *   is missing
   */
  constructor(ids: PublicIds, options?: ParsePipeOptions<As>);
  transform(value: unknown): IdForms[As];
  /**
   * A class of pipes that gets its `publicIds()` from a provider, whose key may come from a ConfigService:
   *
   * ```ts
   * providers: [{
   *   provide: 'ORDER_IDS',
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => publicIds({ kind: 'order', key: config.getOrThrow('PUBLIC_ID_KEY') }),
   * }]
   * find(@Param('id', ParsePublicIdPipe.inject('ORDER_IDS')) id: string)
   * ```
   *
   * @param token the provider's
   * @throws `ERR_SNOWFLAKE_CONFIG` no token, or the package `@nestjs/common` is missing
   */
  static inject<As extends 'bigint' | 'string' = 'string'>(
    token: unknown,
    options?: ParsePipeOptions<As>,
  ): new (
    ids: PublicIds,
  ) => ParsePublicIdPipe<As>;
}

/** What a pipe returns, by the option `as`. */
interface IdForms {
  bigint: bigint;
  number: number;
  string: string;
}

/**
 * A health indicator for `@nestjs/terminus` 10, 11 and 12. Add it to the providers of a module:
 *
 * ```ts
 * constructor(private health: HealthCheckService, private ids: SnowFlakeHealthIndicator) {}
 *
 * @Get('ready')
 * @HealthCheck()
 * ready() {
 *   return this.health.check([() => this.ids.isHealthy()])
 * }
 * ```
 *
 * It is up if IDs are available, as far as that is known without generating one, and down with the reason. While renewals
 * fail, it is up until the ceiling. For readiness: a restart does not bring a store back. It shows the `Health` of
 * `snowdrift/monitoring`.
 */
export class SnowFlakeHealthIndicator {
  /** @throws `ERR_SNOWFLAKE_CONFIG` the package `@nestjs/terminus` is missing */
  constructor();
  /**
   * @param key the name in the result. Default `'snowdrift'`
   * @param flake Default: the default instance, which is that of {@link SnowFlakeModule}
   * @returns the health; with terminus 10, rejects with its HealthCheckError if it is down
   */
  isHealthy<Key extends string = 'snowdrift'>(
    key?: Key,
    flake?: SnowFlake | CachedSnowFlake,
  ): Promise<Record<Key, Health>>;
}
