import source from './database.js';

await source.initialize();
// Pods start at the same time: the first one migrates, the others wait for this lock.
const lock = source.createQueryRunner();
await lock.startTransaction();
await lock.query("SELECT pg_advisory_xact_lock(hashtext('migrate'))");
const migrations = await source.runMigrations();
await lock.commitTransaction();
await lock.release();
await source.destroy();
console.log(`${migrations.length} migrations applied`);
