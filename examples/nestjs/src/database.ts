import { join } from 'node:path';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { Customer, Order } from './entities.js';

const url = process.env.DATABASE_URL;
// Node's own error would show the password.
if (!url || !URL.canParse(url)) {
  throw new Error(
    'DATABASE_URL must be as postgres://user:password@host/shop, with a percent-encoded password',
  );
}

export const options: DataSourceOptions = {
  type: 'postgres',
  url,
  entities: [Customer, Order],
  migrations: [join(import.meta.dirname, 'migrations/*.js')],
};

/** The store of leases: the same database, in a schema where TypeORM drops nothing. */
export const leases = new URL(url);
leases.searchParams.set('schema', 'ids');

/** Of `npm run migrate` and `npm run generate`. The application has its own, by NestJS. */
export default new DataSource(options);
