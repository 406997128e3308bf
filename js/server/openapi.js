'use strict';
// The OpenAPI description of `snowdrift serve`, for clients in other languages.

const whole = { type: 'integer', minimum: 0 };
const refer = (/** @type {string} */ name) => ({ $ref: `#/components/schemas/${name}` });
const object = (/** @type {object} */ properties, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

const SCHEMAS = {
  Id: { type: 'string', pattern: '^(0|[1-9][0-9]{0,18})$', examples: ['900833463518117888'] },
  Problem: object(
    {
      title: { type: 'string' },
      status: { type: 'integer', minimum: 400, maximum: 599 },
      detail: { type: 'string' },
      code: { type: 'string', pattern: '^ERR_SNOWFLAKE_[A-Z_]+$' },
      retryAfterMs: whole,
    },
    ['title', 'status', 'detail'],
  ),
  ParsedId: object({
    id: refer('Id'),
    timestamp: { type: 'integer' },
    date: { type: 'string', format: 'date-time' },
    ...{ datacenterId: whole, workerId: whole, clockBack: whole, sequence: whole },
  }),
};

/** @type {(description: string, type: string, schema: object) => object} */
const content = (description, type, schema) => ({ description, content: { [type]: { schema } } });

/**
 * An operation: its summary, its responses, and its parameter.
 * @type {(summary: string, schema: object, parameter?: object, type?: string) => object}
 */
const operation = (summary, schema, parameter, type = 'application/json') => ({
  summary,
  ...(parameter && { parameters: [{ ...parameter, required: true }] }),
  responses: {
    200: content(summary, type, schema),
    default: content('It is refused', 'application/problem+json', refer('Problem')),
  },
});

/** @param {number} most the most IDs of one batch */
function pathsOf(most) {
  const ids = { type: 'array', items: refer('Id'), maxItems: most };
  const count = { name: 'n', in: 'query', schema: { type: 'integer', minimum: 1, maximum: most } };
  const id = { name: 'id', in: 'path', schema: { type: 'string' } };
  const node = object({ datacenterId: whole, workerId: whole, now: { type: 'integer' } });
  const health = object({ status: { const: 'ok' } });
  return {
    '/id': { post: operation('Generates an ID', object({ id: refer('Id') })) },
    '/ids': {
      post: operation('Generates IDs in ascending order', object({ ids }), count),
    },
    '/parse/{id}': { get: operation('Decodes an ID', refer('ParsedId'), id) },
    '/node': { get: operation('Names the node, and its time in Unix ms', node) },
    '/healthz': {
      get: { ...operation('Reports whether IDs are available', health), security: [] },
    },
    '/metrics': {
      get: operation('Metrics for Prometheus', { type: 'string' }, undefined, 'text/plain'),
    },
  };
}

/** @param {{ most: number, hasToken: boolean }} options the most IDs of one batch, and whether clients need a token */
function apiOf({ most, hasToken }) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'snowdrift serve',
      version: require('../../package.json').version,
      description:
        'IDs are strings, since JSON numbers lose digits. Each error is a Problem (RFC 9457). After a 503, try again.',
    },
    ...(hasToken && { security: [{ token: [] }] }),
    paths: pathsOf(most),
    components: {
      schemas: SCHEMAS,
      ...(hasToken && { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } }),
    },
  };
}

module.exports = { apiOf };
