// Modules without types, for the compiler only: no package has this file.

/** An addon, of its platform. */
declare module '@snowdrift/*' {
  const addon: unknown;
  export = addon;
}

/** NestJS's, which comes with no `npm ci`. */
declare module '@nestjs/terminus' {
  const terminus: unknown;
  export = terminus;
}

/** It has no types of its own. */
declare module 'pg' {
  const client: unknown;
  export = client;
}

declare module '@upstash/redis' {
  const client: unknown;
  export = client;
}

declare module '@google-cloud/storage' {
  const all: unknown;
  export = all;
}

declare module '@aws-sdk/*' {
  const client: unknown;
  export = client;
}
