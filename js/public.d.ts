/**
 * Public IDs: IDs as texts for strangers, who learn neither time, host nor volume from them, and cannot guess others. The
 * database keeps the 8 bytes of the ID; no second column. It needs no addon, and of Node only `node:crypto`: Bun, Deno
 * and Workers have it. It is not for browsers, where the key must not be.
 *
 * ```js
 * import { publicIds } from 'snowdrift/public'
 * const orders = publicIds({ kind: 'order', key: process.env.PUBLIC_ID_KEY })
 * const text = orders.encode(900710334548443136n)  // 'order_' and 26 characters
 * orders.decode(text)                              // 900710334548443136n
 * ```
 */

import type { BigIntId, Id } from './id';

/** Options of {@link publicIds}. An option that is passed as undefined is `ERR_SNOWFLAKE_CONFIG`, such as an unset key. */
export interface PublicIdsOptions {
  /**
   * What has these IDs, such as `'order'`: a text of any length, in Unicode's form NFC. The texts of one kind are refused
   * by all others. Kind, prefix and key cannot change: all texts would be refused.
   */
  kind: string;
  /**
   * 32 random bytes as base64 or hex: `npx snowdrift public key` makes some. Refused are bytes that form a simple pattern or
   * are mostly text, and the keys that snowdrift's pages print. A secret of the application, like a password.
   */
  key?: string | undefined;
  /** Several keys instead of `key`, to replace one: the first encodes, all decode. */
  keys?: readonly string[] | undefined;
  /**
   * The text before the 26 characters: letters, digits, `_` and `-`, with `_` or `-` at its end. Default: the kind and
   * `_`. `false` for none. People see the kind in it; `decode` checks both.
   */
  prefix?: string | false;
}

/** The public IDs of one kind. Its functions can be passed as callbacks. */
export interface PublicIds<Of extends string = string> {
  readonly kind: string;
  /** The text before the 26 characters, or `''`. */
  readonly prefix: string;
  /**
   * The public ID of an ID: a bigint or a decimal string, 0 to 2^63 - 1. The same ID gives the same text, while key, kind and
   * prefix are the same.
   *
   * @throws `ERR_SNOWFLAKE_INVALID_ID`
   */
  encode(id: bigint | string): string;
  /**
   * The ID of a public ID.
   *
   * @throws `ERR_SNOWFLAKE_INVALID_ID` forged, misspelt, of another kind or key, or not a string
   */
  decode(text: string): BigIntId<Of>;
  /**
   * The same as a decimal string, for ORMs.
   *
   * @throws `ERR_SNOWFLAKE_INVALID_ID`
   */
  decodeString(text: string): Id<Of>;
  /** Whether `decode` accepts a value. */
  is(value: unknown): value is string;
  /**
   * A Standard Schema that takes a public ID and gives the ID: as a bigint, or with `as: 'string'` as a decimal string.
   *
   * @throws `ERR_SNOWFLAKE_CONFIG`
   */
  schema(options?: { as?: 'bigint' }): PublicIdSchema<BigIntId<Of>>;
  schema(options: { as: 'string' }): PublicIdSchema<Id<Of>>;
}

/** Its functions can be passed as callbacks. */
export interface PublicIdSchema<Output> {
  /** For libraries that accept a Standard Schema, version 1: tRPC, ArkType, TanStack Form and others. */
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'snowdrift';
    readonly validate: (
      value: unknown,
    ) =>
      | { readonly value: Output; readonly issues?: undefined }
      | { readonly issues: readonly { readonly message: string }[] };
    /** For the compiler only. */
    readonly types?: { readonly input: string; readonly output: Output };
  };
  /** Whether a value is a public ID of this kind. */
  is(value: unknown): value is string;
  /**
   * The ID of a public ID.
   *
   * @throws `ERR_SNOWFLAKE_INVALID_ID`
   */
  parse(value: unknown): Output;
}

/**
 * The public IDs of a kind. Create it once: it keeps its ciphers. `publicIds<'Order'>()` also gives IDs the type
 * `BigIntId<'Order'>`.
 *
 * @throws `ERR_SNOWFLAKE_CONFIG` no key, a weak one or a published one; or the kind or the prefix cannot be used. Errors hide what may be a key
 */
export function publicIds<Of extends string = string>(options: PublicIdsOptions): PublicIds<Of>;
