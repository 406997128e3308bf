-- All statements that leases, "snowdrift slots" and "snowdrift recover" send to a SQL database. A test holds the stores to this file.
-- Of the schema, public and app are examples. sql() is the store for any client; postgres(), mysql() and typeorm() have their own client.
-- "Both" are these and sql(), and URLs.

-- dialect: postgres
-- now() is the time at which the transaction began. If a write and the read after it have the same, both are in one transaction of the
-- application, and the store refuses it.

-- Both
SELECT COALESCE(
  (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = to_regclass('snowdrift_records')),
  current_schema()) AS home;

CREATE TABLE IF NOT EXISTS "public".snowdrift_records (
  namespace VARCHAR(64) NOT NULL,
  name VARCHAR(64) NOT NULL,
  token VARCHAR(16) NOT NULL,
  text BYTEA NOT NULL,
  writes VARCHAR(512) NOT NULL DEFAULT '-',
  PRIMARY KEY (namespace, name)
);

SELECT namespace FROM "public".snowdrift_records WHERE name = $1 ORDER BY namespace LIMIT 1000;

SELECT n.nspname AS home
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relname = 'snowdrift_records' LIMIT 100;

SELECT CAST(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS TEXT) AS now;

-- sql()
SELECT token, encode(text, 'hex') AS text,
    CAST(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS TEXT) AS now, writes,
    CAST(CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT) AS TEXT) AS began
  FROM "public".snowdrift_records
  WHERE namespace = $1 AND name = $2 FOR UPDATE;

INSERT INTO "public".snowdrift_records (namespace, name, token, text, writes)
  VALUES ($1, $2, $3, decode($4, 'hex'), $5)
  ON CONFLICT DO NOTHING
  RETURNING CAST(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS TEXT) AS now,
    CAST(CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT) AS TEXT) AS began;

UPDATE "public".snowdrift_records
  SET token = $1, text = decode($2, 'hex'), writes = substr(CAST($3 AS VARCHAR) || writes, 1, 512)
  WHERE namespace = $4 AND name = $5 AND token = $6
  RETURNING CAST(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS TEXT) AS now,
    CAST(CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT) AS TEXT) AS began;

SELECT n.nspname AS home
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relname = 'snowdrift_records' AND n.nspname = $1;

-- postgres() and typeorm()
SELECT token, encode(text, 'hex') AS text,
    CAST(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS TEXT) AS now
  FROM "public".snowdrift_records
  WHERE namespace = $1 AND name = $2 FOR UPDATE;

INSERT INTO "public".snowdrift_records (namespace, name, token, text)
  VALUES ($1, $2, $3, decode($4, 'hex'))
  ON CONFLICT DO NOTHING
  RETURNING CAST(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS TEXT) AS now,
    CAST(CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT) AS TEXT) AS began;

UPDATE "public".snowdrift_records
  SET token = $1, text = decode($2, 'hex')
  WHERE namespace = $3 AND name = $4 AND token = $5
  RETURNING CAST(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS TEXT) AS now,
    CAST(CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT) AS TEXT) AS began;

-- dialect: mysql
-- Only MariaDB reads the comment /*M! ... */. On MySQL, only users with further rights see that a transaction is open.

-- Both
SELECT DATABASE() AS home;

CREATE TABLE IF NOT EXISTS `app`.snowdrift_records (
  namespace VARBINARY(64) NOT NULL,
  name VARBINARY(64) NOT NULL,
  token VARBINARY(16) NOT NULL,
  text BLOB NOT NULL,
  writes VARBINARY(512) NOT NULL DEFAULT '-',
  PRIMARY KEY (namespace, name)
);

SELECT HEX(namespace) AS namespace
  FROM `app`.snowdrift_records
  WHERE name = ?
  ORDER BY namespace LIMIT 1000;

SELECT table_schema AS home
  FROM information_schema.tables
  WHERE table_name = 'snowdrift_records' LIMIT 100;

SELECT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000) AS now;

-- sql()
SELECT HEX(token) AS token,
    HEX(text) AS text, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000) AS now,
    HEX(writes) AS writes,
    CASE WHEN @@autocommit = 0 /*M! OR @@in_transaction = 1 */ THEN 'open' ELSE '' END AS began
  FROM `app`.snowdrift_records
  WHERE namespace = ? AND name = ? FOR UPDATE;

INSERT INTO `app`.snowdrift_records (namespace, name, token, text, writes)
  VALUES (?, ?, ?, UNHEX(?), ?);

UPDATE `app`.snowdrift_records
  SET token = ?, text = UNHEX(?), writes = SUBSTR(CONCAT(?, writes), 1, 512)
  WHERE namespace = ? AND name = ? AND token = ?;

SELECT table_schema AS home
  FROM information_schema.tables
  WHERE table_name = 'snowdrift_records' AND table_schema = ?;

-- mysql() and typeorm()
DO 0;

SELECT HEX(token) AS token, HEX(text) AS text, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000) AS now
  FROM `app`.snowdrift_records
  WHERE namespace = ? AND name = ? FOR UPDATE;

INSERT INTO `app`.snowdrift_records (namespace, name, token, text) VALUES (?, ?, ?, UNHEX(?));

UPDATE `app`.snowdrift_records
  SET token = ?, text = UNHEX(?)
  WHERE namespace = ? AND name = ? AND token = ?;

-- dialect: sqlite
-- A read is an UPDATE that changes nothing, so that no replica answers it. PRAGMA wal_checkpoint fails with "database table is locked" in a
-- transaction, also in one that a client has left open by mistake. Servers of SQLite refuse it, and run each statement alone.

SELECT 'main' AS home;

PRAGMA wal_checkpoint;

UPDATE "main".snowdrift_records
  SET token = token
  WHERE namespace = ? AND name = ?
  RETURNING token,
    hex(text) AS text,
    CAST(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) AS TEXT) AS now,
    writes,
    '' AS began;

SELECT 'main' AS home
  FROM main.sqlite_master
  WHERE type = 'table' AND name = 'snowdrift_records' AND 'main' = ?;

INSERT INTO "main".snowdrift_records (namespace, name, token, text, writes)
  VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS "main".snowdrift_records (
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  token TEXT NOT NULL,
  text TEXT NOT NULL,
  writes TEXT NOT NULL DEFAULT '-',
  PRIMARY KEY (namespace, name)
);

UPDATE "main".snowdrift_records
  SET token = ?, text = ?, writes = substr(? || writes, 1, 512)
  WHERE namespace = ? AND name = ? AND token = ?;

SELECT namespace FROM "main".snowdrift_records WHERE name = ? ORDER BY namespace LIMIT 1000;

SELECT 'main' AS home
  FROM main.sqlite_master
  WHERE type = 'table' AND name = 'snowdrift_records' LIMIT 100;

SELECT CAST(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) AS TEXT) AS now;
