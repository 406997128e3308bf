// A scalar of public IDs, for graphql 16 and 17. Resolvers take and return IDs, not public ones. Each kind needs a scalar, and
// each field with an ID its scalar: a field of type ID or String would show the ID itself.
import { GraphQLScalarType, Kind } from 'graphql';
import { publicIds } from 'snowdrift/public';

const orders = publicIds({ kind: 'order', key: process.env.PUBLIC_ID_KEY });
const { parse } = orders.schema();

export const OrderId = new GraphQLScalarType({
  name: 'OrderId',
  description: "An order's public ID",
  serialize: (id) => orders.encode(id as bigint),
  parseValue: parse,
  parseLiteral: (node) => parse(node.kind === Kind.STRING ? node.value : undefined),
});
