// The names of what is compared, in the order of the tables.

/** What the README compares. */
export const NAMES = {
  snowdrift: 'snowdrift',
  uuidv7: 'UUIDv7 (`uuid`)',
  randomUUIDv7: 'UUIDv7 (`crypto.randomUUIDv7`)',
  ulid: 'ULID (`ulid`)',
  tsid: 'TSID (`tsid-ts`)',
  autoincrement: 'autoincrement (`pg`)',
  'nodejs-snowflake': 'nodejs-snowflake',
  '@sapphire/snowflake': '@sapphire/snowflake',
  'flake-idgen': 'flake-idgen',
};

/** In the figures alone. */
const OTHERS = {
  'ulid, monotonic': '`monotonicFactory()` of `ulid`',
  uuidv4: 'UUIDv4 (`crypto.randomUUID`)',
};

/** All kinds. */
export const ALL = Object.keys({ ...NAMES, ...OTHERS });

/** As Markdown. */
export const nameOf = (kind) => NAMES[kind] ?? OTHERS[kind] ?? kind;

/** As plain text. */
export const plainNameOf = (kind) => nameOf(kind).replaceAll('`', '');
