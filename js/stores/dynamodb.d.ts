import type { LeaseStore, StoreOptions } from './store';

export interface DynamoDBOptions extends StoreOptions {
  /** The table. Default `'snowdrift_records'`. */
  table?: string;
}

/**
 * A store in DynamoDB, with consistent reads and conditional writes.
 *
 * The table must exist, and its partition key be the text `id`, without a sort key:
 * `aws dynamodb create-table --table-name snowdrift_records --attribute-definitions AttributeName=id,AttributeType=S
 * --key-schema AttributeName=id,KeyType=HASH --billing-mode PAY_PER_REQUEST`. An item is a record; `id` begins with the
 * namespace and a `#`. Its role needs `dynamodb:GetItem` and `dynamodb:PutItem`; `dynamodb:Scan` is for the warning that a
 * new namespace may be misspelt.
 *
 * All leases of a namespace must be in one Region. A replica of a global table in another Region learns of a write later,
 * so that both would give the same worker ID; unless its consistency is `STRONG`.
 *
 * Holds expire by the service's clock: the header `Date` of its replies, in whole seconds. snowdrift compares clocks to half
 * a second, so choose `maxClockSkew` of at least 1 s.
 *
 * As a URL of a lease: `dynamodb://eu-central-1/snowdrift_records?namespace=orders`, with `endpoint=http://...` for another
 * service. The client finds its credentials as always: no URL has any.
 *
 * @param client a DynamoDBClient of `@aws-sdk/client-dynamodb`, version 3.363 or later, or a DynamoDBDocumentClient; the package is
 *   loaded at the first call
 */
export function dynamodb(client: { send: unknown }, options?: DynamoDBOptions): LeaseStore;
