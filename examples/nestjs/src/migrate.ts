import { setTimeout as sleep } from 'node:timers/promises';
import source from './database.js';

await source.initialize();
// Pods start at the same time: the first one migrates, the others ask for this lock once a second. A statement that waits for it
// would never let CREATE INDEX CONCURRENTLY end.
const lock = source.createQueryRunner();
await lock.startTransaction();
const take = "SELECT pg_try_advisory_xact_lock(hashtext('migrate')) AS taken";
while (!(await lock.query(take))[0].taken) await sleep(1000);
const migrations = await source.runMigrations();
await lock.commitTransaction();
await lock.release();
await source.destroy();
console.log(`${migrations.length} migrations applied`);
