// What docs/comparison.md says in words: conditions, when to use which, and what was read rather than measured.

const BITS = ['no two random parts are equal', 'nothing'];

/** By kind: the condition under which its IDs are unique, and its needs. */
export const conditions = {
  snowdrift: [
    'each host has a number or leases one; `state`, if the clock may be wrong after a reboot',
    'an addon',
  ],
  uuidv7: BITS,
  randomUUIDv7: [BITS[0], 'Node 24.16 or 26.1'],
  ulid: BITS,
  tsid: ['each process has a number, and does not restart while the clock is back', 'nothing'],
  autoincrement: ['one database assigns all', 'a round trip per row'],
  'nodejs-snowflake': [
    'each process has a number and one `custom_epoch`, and the clock never goes back',
    'nothing',
  ],
  '@sapphire/snowflake': [
    'each process has a number, at most 4,096 IDs per ms, and the clock never goes back',
    'nothing',
  ],
  'flake-idgen': [
    'each process has a number, and does not restart while the clock is back',
    'nothing',
  ],
};

export const useOthers = `## Use UUIDv7 instead when

- **IDs come from places that you cannot number**: browsers, phones, offline devices, other companies' systems.
- **No host can have a number, and there is no store to lease one from**, as with functions that scale to thousands.
- **You merge databases** whose IDs were generated independently.
- **The stored ID must be hard to guess**, also for those who read the database. It has random bits, though it shows its time. To strangers
  you can show [public IDs](public-ids.md). For a secret, use \`crypto.randomUUID()\`.
- **You cannot load an addon.** snowdrift generates IDs in Node, Bun and Deno only; \`snowdrift/id\` reads them anywhere.
- **The table is small.** Up to some million rows the size of the key hardly matters, and the column type \`uuid\` is
  known everywhere.

Use **autoincrement** when one database writes all rows, and nobody needs an ID before the row is there. It is the smallest
and simplest. It shows how many rows there are, and two databases cannot share it.

Use **snowdrift** when keys are \`bigint\`, several processes or hosts generate them, and a duplicate is not acceptable.`;

/** @param shared by package: the chance that some of 8 processes have one number */
export const paragraphs = (
  shared,
  { processes },
) => `**UUIDv7** (\`uuid\`) needs nothing: no number, no store, no addon. In one process it rises even when the clock goes
back, which is better than snowdrift's default. Between processes it sorts by millisecond. Node's own
\`crypto.randomUUIDv7()\`, in Node 24.16 and 26.1, is faster and has no order within a millisecond. A key takes 16 bytes instead of
8, and each foreign key and each index of MariaDB repeats them.

**ULID** (\`ulid\`) is much like UUIDv7, in 26 characters: as unique, and easier to read and to select. Within a millisecond the
plain \`ulid()\` has no order; \`monotonicFactory()\` has, and is faster. Stored as text it takes the most space here. Stored
as \`uuid\` or bytes it takes what UUIDv7 takes.

**TSID** (\`tsid-ts\`) has 64 bits as snowdrift has, and 13 characters that sort. It goes on in order when the clock goes
back. A process takes a random number of 1,024 unless you give it one: of ${processes} processes, some share a number with a
chance of ${shared.tsid}. Two that share one generate duplicates. A good choice with few processes, if you number them.

**Autoincrement** is the smallest, always in order, and needs no clock. The database is asked for each ID, so an ID is not
known before the row is written. Asked one by one it is the slowest.

**nodejs-snowflake** is WebAssembly, so it needs no binary for each platform. By default its epoch is the moment when the
generator is made, so the IDs of two processes do not sort: set \`custom_epoch\`. The number of a process is random, of 4,096: of ${processes} processes, some share one with a chance of ${shared.wasm}. After a clock rollback one
process generates its own IDs again.

**@sapphire/snowflake** is plain JavaScript, small, and reads Discord's IDs well, for which it is made. All processes have the same
number until you set \`workerId\` and \`processId\`. Nothing stops it after 4,096 IDs in a millisecond, or after a clock
rollback.

**flake-idgen** is plain JavaScript without dependencies. It refuses when the clock goes back, which is safe, but a process
that starts then knows nothing of it and generates duplicates. All processes have the number 0 until you set \`id\`. An ID is a
Buffer. With the default epoch, 1970, IDs no longer fit a signed BIGINT from 2039-09-07 on: set \`epoch\`.

**snowdrift** needs an addon, prebuilt for each platform, and a number for each host. After a clock rollback its IDs continue
with an earlier time: unique, but lower than those before. \`clockBack: 'wait'\` and \`'throw'\` refuse instead. Its IDs
[show time, host and volume](../README.md#what-an-id-reveals), as those of TSID and the other Snowflakes do.`;

export const read = `- That random bits do not meet: UUIDv7 has 74 bits beside its time (RFC 9562), ULID 80 (its specification). \`uuid\` counts in 32 of
  the 74 within a millisecond. No test can show that, and none of these generated a duplicate here.
- How many numbers a package has for its generators, and that they are random or 0 by default: its README and its source.
- PostgreSQL 18 and MariaDB 11.7 make UUIDv7 by themselves, by \`uuidv7()\` and \`UUID_v7()\`: their manuals.
- Which platforms a package runs on: its README.`;
