/**
 * Checks IDs that come from outside: a Standard Schema, and a predicate for any other validator. It needs neither the
 * addon nor Node.
 *
 * ```js
 * import { idSchema } from 'snowdrift/schema'
 * const userId = idSchema()
 * userId.is('501276370537314304')  // true
 * userId.is(501276370537314304)    // false: a number holds no more than 53 bits
 * ```
 */

import type { BigIntId, Id, Layout, LayoutName, NumberId } from './id';

/** Options of {@link idSchema}. Passing `layout` or `since` as undefined is `ERR_SNOWFLAKE_CONFIG`. */
export interface IdSchemaOptions<As extends 'bigint' | 'number' | 'string'> {
  /**
   * The layout of the IDs. An ID is then also rejected if it is wider than the layout, or if its time is more than a
   * day in the future. Default: any ID passes, 0 to 2^63 - 1.
   */
  layout?: LayoutName | Layout;
  /**
   * The time of the application's first ID, a Date or Unix ms: earlier IDs are rejected. Needs `layout`. Only this
   * option rejects IDs of a layout with a later epoch.
   */
  since?: Date | number;
  /** The form of the IDs that pass. Default `'string'`. `'number'` needs a layout of at most 53 bits. */
  as?: As;
}

/** Its functions can be passed as callbacks. */
export interface IdSchema<Output> {
  /** For libraries that accept a Standard Schema, version 1: tRPC, ArkType, TanStack Form and others. */
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'snowdrift';
    readonly validate: (
      value: unknown,
    ) => { readonly value: Output; readonly issues?: undefined } | IdIssues;
    /** For the compiler only. */
    readonly types?: { readonly input: bigint | string | Output; readonly output: Output };
  };
  /**
   * Whether a value is a valid ID in the form that `as` names. Leading zeros, signs, spaces and digits of other scripts
   * are not valid.
   */
  is(value: unknown): value is Output;
  /**
   * Converts an ID to the form that `as` names: from a bigint or a decimal string, or from a number with a layout of
   * at most 53 bits.
   *
   * @throws `ERR_SNOWFLAKE_INVALID_ID`
   */
  parse(value: unknown): Output;
}

/** The reason why a value is invalid, as a Standard Schema reports it. */
export interface IdIssues {
  readonly issues: readonly { readonly message: string }[];
}

/**
 * A schema that rejects invalid IDs. `idSchema<'User'>()` also gives valid ones the type `Id<'User'>`.
 *
 * @throws `ERR_SNOWFLAKE_CONFIG` not a layout; or `as` does not fit it; or `since` without one
 * @throws `ERR_SNOWFLAKE_ARGUMENT` `since` is outside the layout's time
 */
export function idSchema<Of extends string = string>(
  options?: IdSchemaOptions<'string'>,
): IdSchema<Id<Of>>;
export function idSchema<Of extends string = string>(
  options: IdSchemaOptions<'bigint'> & { as: 'bigint' },
): IdSchema<BigIntId<Of>>;
export function idSchema<Of extends string = string>(
  options: IdSchemaOptions<'number'> & { as: 'number'; layout: 'safe' | Layout },
): IdSchema<NumberId<Of>>;
