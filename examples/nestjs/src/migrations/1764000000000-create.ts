import type { MigrationInterface, QueryRunner } from 'typeorm';

/** As `npm run generate` wrote it, and the schema of leases. */
export class Create1764000000000 implements MigrationInterface {
  async up(runner: QueryRunner) {
    // snowdrift creates its table there. IF NOT EXISTS needs the right to create schemas also where there is one.
    const [{ isMissing }] = await runner.query(
      `SELECT to_regnamespace('ids') IS NULL AS "isMissing"`,
    );
    if (isMissing) await runner.query('CREATE SCHEMA "ids"');
    await runner.query(`
      CREATE TABLE "customers" (
        "id" bigint NOT NULL,
        "name" text NOT NULL,
        CONSTRAINT "PK_133ec679a801fab5e070f73d3ea" PRIMARY KEY ("id")
      )
    `);
    await runner.query(`
      CREATE TABLE "orders" (
        "id" bigint NOT NULL,
        "customerId" bigint NOT NULL,
        "item" text NOT NULL,
        CONSTRAINT "PK_710e2d4957aa5878dfe94e4ac2f" PRIMARY KEY ("id")
      )
    `);
    await runner.query('CREATE INDEX "IDX_e5de51ca888d8b1f5ac25799dd" ON "orders" ("customerId")');
    await runner.query(`
      ALTER TABLE "orders" ADD CONSTRAINT "FK_e5de51ca888d8b1f5ac25799dd1"
      FOREIGN KEY ("customerId") REFERENCES "customers" ("id")
    `);
  }

  async down(runner: QueryRunner) {
    await runner.query('DROP TABLE "orders", "customers"'); // never the leases
  }
}
