import type {
  CachedSnowFlakeOptions,
  LeaseOptions,
  LeaseStore,
  RingOptions,
  SnowFlakeOptions,
} from './index';

/**
 * Where the generator comes from: `from` a lease, as for `SnowFlake.lease(from, options)`; else the
 * constructor's options, or the environment.
 */
export type SnowFlakeModuleOptions =
  | (SnowFlakeOptions & { from?: undefined })
  | (LeaseOptions & { from: string | URL | LeaseStore });

export type CachedSnowFlakeModuleOptions =
  | (CachedSnowFlakeOptions & { from?: undefined })
  | (Omit<LeaseOptions, 'clock'> & RingOptions & { from: string | URL | LeaseStore });

export interface SnowFlakeModulePlace {
  /** Whether all modules have it without importing it. Default true. */
  isGlobal?: boolean;
}

interface Factory<Options> {
  imports?: unknown[];
  inject?: unknown[];
  // biome-ignore lint/suspicious/noExplicitAny: what is injected is the application's
  useFactory: (...injected: any[]) => Options | Promise<Options>;
}

/** Of NestJS, what a module's static functions return. */
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
 * For NestJS 10 and 11. It provides `SnowFlake`, or with `cached: true` `CachedSnowFlake`, to be injected
 * by its type:
 *
 * ```ts
 * constructor(private readonly ids: SnowFlake) {}
 * ```
 *
 * and closes it at `onApplicationShutdown`: by `app.close()`, and by a signal after
 * `app.enableShutdownHooks()`. A lease is given up then, and awaited.
 */
export class SnowFlakeModule {
  static forRoot(
    options?: SnowFlakeModulePlace &
      (
        | ({ cached?: false } & SnowFlakeModuleOptions)
        | ({ cached: true } & CachedSnowFlakeModuleOptions)
      ),
  ): DynamicModule;

  /** `useFactory` returns the options, or a promise of them. What it throws stops the application. */
  static forRootAsync(
    options: SnowFlakeModulePlace &
      (
        | ({ cached?: false } & Factory<SnowFlakeModuleOptions>)
        | ({ cached: true } & Factory<CachedSnowFlakeModuleOptions>)
      ),
  ): DynamicModule;
}
