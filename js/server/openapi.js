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

const refer = (name) => ({ $ref: `#/components/schemas/${name}` });

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
    id: refer('Id'),
    timestamp: { type: 'integer' },
    date: { type: 'string', format: 'date-time' },
    datacenterId: whole,
    workerId: whole,
    clockBack: whole,
    sequence: whole,
  }),
};

const content = (type, description, schema) => ({ description, content: { [type]: { schema } } });
const json = (...of) => content('application/json', ...of);
const problem = (description) => content('application/problem+json', description, refer('Problem'));

const BUSY = problem('No ID is available. Try again, after Retry-After if it is there.');

const REFUSED = problem(
  'The request is refused: its sender, token, path or method, or there are too many connections.',
);

/** A method of a path. Each may be refused. */
const methodOf = (method) => (summary, responses, more) => ({
  [method]: { summary, ...more, responses: { ...responses, default: REFUSED } },
});
const [get, post] = ['get', 'post'].map(methodOf);
const parameter = (name, place, schema) => ({
  parameters: [{ name, in: place, required: true, schema }],
});

/** @param most IDs of one batch */
function pathsOf(most) {
  const ids = { type: 'array', items: refer('Id'), maxItems: most };
  const node = { datacenterId: whole, workerId: whole, now: { type: 'integer' } };
  return {
    '/id': post('Generates an ID', {
      200: json('An ID', object({ id: refer('Id') })),
      503: BUSY,
    }),
    '/ids': post(
      'Generates IDs, in ascending order',
      {
        200: json('IDs', object({ ids })),
        400: problem('n is missing or out of range.'),
        503: BUSY,
      },
      parameter('n', 'query', { type: 'integer', minimum: 1, maximum: most }),
    ),
    '/parse/{id}': get(
      'Decodes an ID',
      { 200: json('Its fields', refer('ParsedId')), 400: problem('It is not an ID.') },
      parameter('id', 'path', { type: 'string' }),
    ),
    '/node': get('Names the node that issues the IDs, and its time in Unix ms', {
      200: json('The node', object(node)),
    }),
    '/healthz': get(
      'Reports whether IDs are available, without generating one. It needs no token.',
      { 200: json('IDs are available', object({ status: { const: 'ok' } })), 503: BUSY },
      { security: [] },
    ),
    '/metrics': get('Metrics for Prometheus', {
      200: content('text/plain', 'Metrics', { type: 'string' }),
    }),
  };
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
    paths: pathsOf(most),
    components: {
      schemas: SCHEMAS,
      ...(hasToken ? { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } } : {}),
    },
  };
}

module.exports = { apiOf };
