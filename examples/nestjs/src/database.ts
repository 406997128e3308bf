import { join } from 'node:path';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { Customer, Order } from './entities.js';

const url = process.env.DATABASE_URL;
if (!url) throw new Error('DATABASE_URL is not set. Example: postgres://user:password@host/shop');

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
