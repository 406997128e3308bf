-- A table with a partition for each month (UTC), by snowflake_floor_id() of docs/sql.md.
CREATE TABLE events (id bigint PRIMARY KEY, name text) PARTITION BY RANGE (id);

DO $$
DECLARE
  month timestamp;
BEGIN
  FOR month IN SELECT generate_series(timestamp '2026-11-01', timestamp '2027-12-01', interval '1 month') LOOP
    EXECUTE format(
      'CREATE TABLE %I PARTITION OF events FOR VALUES FROM (%s) TO (%s)',
      to_char(month, '"events_"YYYY_MM'),
      snowflake_floor_id(month AT TIME ZONE 'UTC'),
      snowflake_floor_id((month + interval '1 month') AT TIME ZONE 'UTC')
    );
  END LOOP;
END $$;

INSERT INTO events VALUES (900710334548459520, 'signed up');
SELECT tableoid::regclass FROM events; -- events_2026_11

-- Removes a month at once.
DROP TABLE events_2026_11;
