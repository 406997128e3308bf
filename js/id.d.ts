/**
 * Decodes, encodes and compares IDs in any JavaScript: browsers, Workers, Electron renderers. It needs neither the
 * addon nor Node, and generates no IDs.
 *
 * ```js
 * import { parse, compareIds, toBase32 } from 'snowdrift/id'
 * parse('501276370537314304').date  // 2023-11-14T22:13:20.000Z
 * ```
 *
 * An ID is a bigint or a string of decimal digits without leading zeros, 0 to 2^63 - 1. A number is an ID only
 * where a layout of at most 53 bits is given, such as `'safe'`. Errors thrown are the `SnowFlakeError` of
 * `snowdrift`, with a `code`.
 */

/**
 * A named layout.
 *
 * | name | bits: timestamp/datacenter/worker/clock-back/sequence | tick | epoch | origin |
 * |---|---|---|---|---|
 * | `node` | 41/3/5/2/12 | 1 ms | 1580486400000 (2020-01-31T16:00Z) | the Node SnowFlake class |
 * | `twitter` | 41/5/5/0/12 | 1 ms | 1288834974657 (2010-11-04T01:42:54.657Z) | Twitter Snowflake |
 * | `uid` | 28/0/22/0/13 | 1 s | 1463673600000 (2016-05-19T16:00Z) | Baidu UidGenerator. Its time ran out on 2024-11-20: use it to decode. To generate, pass a later `epoch`. It can cause duplicates of old IDs, so use only worker IDs that never issued any |
 * | `discord` | 41/5/5/0/12 | 1 ms | 1420070400000 (2015-01-01T00:00Z) | Discord |
 * | `safe` | 41/0/6/1/5 | 1 ms | 1767225600000 (2026-01-01T00:00Z) | 53 bits, exact as a JavaScript number |
 */
export type LayoutName = 'node' | 'twitter' | 'uid' | 'discord' | 'safe';

/**
 * How the bits of an ID are divided, from high to low in this order. The widths add up to at most 63. Bit 63,
 * the sign, stays 0.
 */
export interface Layout {
  /** 1 to 62. With ticks of 1 ms, 41 bits last 69.7 years. */
  readonly timestampBits: number;
  /** 0 to 53. A `datacenterId` is 0 to 2^bits - 1. */
  readonly datacenterBits: number;
  /** 0 to 53. A `workerId` is 0 to 2^bits - 1. */
  readonly workerBits: number;
  /** 0 to 4. n bits tolerate 2^n - 1 clock rollbacks at once. */
  readonly clockBackBits: number;
  /** 1 to 53. A node issues at most 2^bits IDs a tick. */
  readonly sequenceBits: number;
  /** Length of a tick in ms: 1 to 86,400,000. */
  readonly tickMs: number;
  /**
   * Unix ms at which tick 0 starts: any time that a `Date` can hold, but for January 1970 after its first moment, where
   * Unix seconds would lie.
   */
  readonly epoch: number;
}

/** The named layouts. Frozen. The same object as `layouts` of `snowdrift`. */
export const layouts: Readonly<Record<LayoutName, Layout>>;

// biome-ignore lint/complexity/noUselessEmptyExport: without it TypeScript exports `of`, too.
export {};

declare const of: unique symbol;
// Three types, not one with a parameter: of that, decorators would see an Object.

/**
 * A string that is the ID of one kind of thing, for the compiler only: an `Id<'User'>` is not an `Id<'Order'>`.
 * `flake.nextIdString() as Id<'User'>` is a new one. `idSchema` of `snowdrift/schema` checks those that come from outside.
 */
export type Id<Of extends string = string> = string & { readonly [of]: Of };
/** The same as a bigint: `flake.nextId() as BigIntId<'User'>`. */
export type BigIntId<Of extends string = string> = bigint & { readonly [of]: Of };
/** The same as a number: `flake.nextIdNumber() as NumberId<'User'>`. */
export type NumberId<Of extends string = string> = number & { readonly [of]: Of };

/** The fields of an ID. */
export interface ParsedFields {
  /** Unix ms of the start of the ID's tick. */
  timestamp: number;
  datacenterId: number;
  workerId: number;
  /** The clock-back counter: 0 unless the clock had rolled back. */
  clockBack: number;
  /** The sequence number within the tick. */
  sequence: number;
}

/** The result of `parse`. */
export interface ParsedId extends ParsedFields {
  id: bigint;
  /** `timestamp` as a Date. */
  date: Date;
  /** The same with `id` as a string, since JSON has no bigint. */
  toJSON(): Omit<ParsedId, 'id' | 'toJSON'> & { id: string };
}

/**
 * Decodes an ID.
 *
 * @param layout the one that issued the ID. Default `'node'`, also where `snowdrift` has another default instance
 * @throws `ERR_SNOWFLAKE_INVALID_ID` not an ID; or wider than the layout; or later than a Date can hold
 * @throws `ERR_SNOWFLAKE_CONFIG` not a layout
 */
export function parse(id: bigint | string, layout?: LayoutName | Layout): ParsedId;
export function parse(id: number, layout: 'safe' | Layout): ParsedId;

/**
 * Encodes an ID, for tests and migrations. Such an ID is not unique.
 *
 * @param fields a `timestamp` is a Date or Unix ms, anywhere in its tick. Defaults: the layout's epoch, and 0
 * @throws `ERR_SNOWFLAKE_ARGUMENT` a field does not fit its bits
 * @throws `ERR_SNOWFLAKE_CONFIG` not a layout
 */
export function compose(
  fields: Partial<Omit<ParsedFields, 'timestamp'> & { timestamp: number | Date }>,
  layout?: LayoutName | Layout,
): bigint;

/**
 * The smallest ID of the tick of a time.
 *
 * @param time a Date or Unix ms, from the epoch to the end of the layout's time
 * @throws `ERR_SNOWFLAKE_ARGUMENT` for another time
 * @throws `ERR_SNOWFLAKE_CONFIG` not a layout
 */
export function floorId(time: Date | number, layout?: LayoutName | Layout): bigint;

/** The largest ID of the tick of a time. As {@link floorId}. */
export function ceilingId(time: Date | number, layout?: LayoutName | Layout): bigint;

/**
 * The IDs of a period, for `WHERE id BETWEEN first AND last`: from the tick of `from` up to, but without, the tick of
 * `until`. Ranges of adjacent periods meet and do not overlap.
 *
 * @param until a Date or Unix ms, at most the end of the layout's time. If it is in the tick of `from`, the range is
 *   empty: `last` is `first - 1n`
 * @throws `ERR_SNOWFLAKE_ARGUMENT` a time outside the layout's; or `until` is before `from`
 * @throws `ERR_SNOWFLAKE_CONFIG` not a layout
 */
export function idRange(
  from: Date | number,
  until: Date | number,
  layout?: LayoutName | Layout,
): { first: bigint; last: bigint };

/**
 * Whether a value is an ID: a bigint or a string of decimal digits, 0 to 2^63 - 1. A string with leading zeros, signs,
 * spaces or digits of other scripts is not an ID.
 *
 * @param layout If given: whether {@link parse} decodes the value by this layout. Then a number may be an ID, too, if
 *   the layout has at most 53 bits. An ID of another layout is noticed only if it is too wide
 * @throws `ERR_SNOWFLAKE_CONFIG` not a layout
 */
export function isId(value: unknown, layout?: LayoutName | Layout): boolean;

/**
 * An ID as 13 characters of Crockford's base32, as `nextIdBase32()` returns it: text that sorts as the IDs do.
 *
 * @throws `ERR_SNOWFLAKE_INVALID_ID`
 */
export function toBase32(id: bigint | string): string;

/**
 * Decodes 13 characters of base32. It accepts only the form that {@link toBase32} returns: upper case, no hyphens, no
 * I, L, O and U, first character 0 to 7.
 *
 * @throws `ERR_SNOWFLAKE_INVALID_ID`
 */
export function fromBase32(text: string): bigint;

/** Whether {@link fromBase32} accepts a value. */
export function isBase32(value: unknown): boolean;

/**
 * Compares two IDs, each a bigint, a decimal string or base32: for `array.sort(compareIds)`. By themselves, decimal
 * strings of different lengths sort wrongly.
 *
 * A string of 13 digits that starts with 1 to 7 is one ID in decimal and another in base32. It is refused: pass
 * `BigInt(text)` or `fromBase32(text)`. In decimal, these are the IDs of the first 32 minutes after an epoch (of the
 * first month, with the layout `'safe'`). In base32, they are at most one ID in 2,000, and none of the layout `'node'`
 * before 2028-10-17. Texts that are all base32 sort by `array.sort()` without this function.
 *
 * @returns -1, 0 or 1
 * @throws `ERR_SNOWFLAKE_INVALID_ID`
 */
export function compareIds(a: bigint | string, b: bigint | string): -1 | 0 | 1;
