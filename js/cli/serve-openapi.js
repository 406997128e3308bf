'use strict';
// The OpenAPI description of `snowdrift serve`, for clients in other languages.

const ID = { type: 'string', pattern: '^[0-9]{1,19}$', examples: ['900833463518117888'] };
const whole = { type: 'integer', minimum: 0 };

const object = (properties, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

const SCHEMAS = {
  Id: ID,
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
    id: { $ref: '#/components/schemas/Id' },
    timestamp: { type: 'integer' },
    date: { type: 'string', format: 'date-time' },
    datacenterId: whole,
    workerId: whole,
    clockBack: whole,
    sequence: whole,
  }),
};

const refer = (name) => ({ $ref: `#/components/schemas/${name}` });
const json = (description, schema) => ({
  description,
  content: { 'application/json': { schema } },
});
const problem = (description) => ({
  description,
  content: { 'application/problem+json': { schema: refer('Problem') } },
});

const BUSY = problem('No ID is available. Try again, after Retry-After if it is there.');

const REFUSED = problem(
  'The request is refused: its sender, token, path or method, or there are too many connections.',
);

/** @param most IDs of one batch */
function pathsOf(most) {
  return {
    '/id': {
      post: {
        summary: 'Generates an ID',
        responses: { 200: json('An ID', object({ id: refer('Id') })), 503: BUSY },
      },
    },
    '/ids': {
      post: {
        summary: 'Generates IDs, in ascending order',
        parameters: [
          {
            name: 'n',
            in: 'query',
            required: true,
            schema: { type: 'integer', minimum: 1, maximum: most },
          },
        ],
        responses: {
          200: json('IDs', object({ ids: { type: 'array', items: refer('Id'), maxItems: most } })),
          400: problem('n is missing or out of range.'),
          503: BUSY,
        },
      },
    },
    '/parse/{id}': {
      get: {
        summary: 'Decodes an ID',
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
        responses: { 200: json('Its fields', refer('ParsedId')), 400: problem('It is not an ID.') },
      },
    },
    '/node': {
      get: {
        summary: 'Names the node that issues the IDs, and its time in Unix ms',
        responses: {
          200: json(
            'The node',
            object({ datacenterId: whole, workerId: whole, now: { type: 'integer' } }),
          ),
        },
      },
    },
    '/healthz': {
      get: {
        summary: 'Reports whether IDs are available, without generating one. It needs no token.',
        security: [],
        responses: {
          200: json('IDs are available', object({ status: { const: 'ok' } })),
          503: BUSY,
        },
      },
    },
    '/metrics': {
      get: {
        summary: 'Metrics for Prometheus',
        responses: {
          200: {
            description: 'Metrics',
            content: { 'text/plain': { schema: { type: 'string' } } },
          },
        },
      },
    },
  };
}

/** Adds the refusals of all requests. */
function withDefaults(paths) {
  for (const methods of Object.values(paths)) {
    for (const { responses } of Object.values(methods)) responses.default = REFUSED;
  }
  return paths;
}

/** @param hasToken whether clients need a token */
function apiOf({ most, hasToken }) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'snowdrift serve',
      version: require('../../package.json').version,
      description:
        'IDs are strings, since JSON numbers lose digits. Each error is a Problem (RFC 9457).',
    },
    ...(hasToken ? { security: [{ token: [] }] } : {}),
    paths: withDefaults(pathsOf(most)),
    components: {
      schemas: SCHEMAS,
      ...(hasToken ? { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } } : {}),
    },
  };
}

module.exports = { apiOf };
