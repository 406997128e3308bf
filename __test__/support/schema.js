'use strict';
// Checks values against the JSON Schemas of an OpenAPI description, as far as serve's uses them. A keyword that it
// does not know is a failure.

const assert = require('node:assert/strict');

const TYPES = {
  object: (value) => value !== null && typeof value === 'object' && !Array.isArray(value),
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  integer: Number.isInteger,
};

const KEYWORDS = {
  type: (value, type) => assert.ok(TYPES[type](value), `${JSON.stringify(value)} is no ${type}`),
  pattern: (value, pattern) => assert.match(value, new RegExp(pattern)),
  minimum: (value, least) => assert.ok(value >= least),
  maximum: (value, most) => assert.ok(value <= most),
  maxItems: (value, most) => assert.ok(value.length <= most),
  const: (value, wanted) => assert.equal(value, wanted),
  format: (value, format) => {
    assert.equal(format, 'date-time');
    assert.equal(new Date(value).toISOString(), value);
  },
  items: (value, schema, _, api) => {
    for (const item of value) checkValue(item, schema, api);
  },
  properties: (value, schemas, _, api) => {
    for (const [name, schema] of Object.entries(schemas)) {
      if (value[name] !== undefined) checkValue(value[name], schema, api);
    }
  },
  required: (value, names) => {
    for (const name of names) assert.ok(Object.hasOwn(value, name), `no ${name}`);
  },
  additionalProperties: (value, _, { properties }) => {
    for (const name of Object.keys(value)) assert.ok(Object.hasOwn(properties, name), name);
  },
  examples: () => {},
};

function checkValue(value, schema, api) {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.replace('#/components/schemas/', '');
    checkValue(value, api.components.schemas[name], api);
    return;
  }
  for (const [keyword, wanted] of Object.entries(schema)) {
    KEYWORDS[keyword](value, wanted, schema, api);
  }
}

/** Checks a response against an API's description of a path. */
function checkResponse(api, path, method, { status, type, body }) {
  const { responses } = api.paths[path][method.toLowerCase()];
  const described = responses[status] ?? responses.default;
  const [mediaType, { schema }] = Object.entries(described.content)[0];
  assert.equal(type.split(';')[0], mediaType);
  checkValue(body, schema, api);
}

module.exports = { checkResponse, checkValue };
