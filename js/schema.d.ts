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

/** Options of {@link idSchema}. A `layout` or `since` that is given has a value: undefined is `ERR_SNOWFLAKE_CONFIG`. */
export interface IdSchemaOptions<As extends 'bigint' | 'number' | 'string'> {
  /**
   * The one that issued the IDs. Then IDs are also refused that are wider than the layout, or whose time by this layout
   * is more than a day in the future. Default: any ID passes, 0 to 2^63 - 1.
   */
  layout?: LayoutName | Layout;
  /**
   * The time of the application's first ID, a Date or Unix ms: earlier ones are refused. Needs `layout`. IDs of a
   * layout with a later epoch are noticed only by this.
   */
  since?: Date | number;
  /** The form of the IDs that pass. Default `'string'`. `'number'` needs a layout of at most 53 bits. */
  as?: As;
}

/** Detached from it, its functions work, too. */
export interface IdSchema<Output> {
  /** For what accepts a Standard Schema, version 1: tRPC, ArkType, TanStack Form and others. */
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'snowdrift';
    readonly validate: (
      value: unknown,
    ) => { readonly value: Output; readonly issues?: undefined } | IdIssues;
    /** Of the compiler only. */
    readonly types?: { readonly input: bigint | string | Output; readonly output: Output };
  };
  /**
   * Whether a value is an ID in the form that `as` names. In it, leading zeros, signs, spaces and digits of other
   * scripts are refused.
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

/** Why a value was refused, as a Standard Schema reports it. */
export interface IdIssues {
  readonly issues: readonly { readonly message: string }[];
}

/**
 * A check of IDs, and what they are IDs of: `idSchema<'User'>()`.
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
