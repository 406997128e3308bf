-- A table with a partition for each month (UTC), by snowflake_floor_id() of docs/sql.md. Rows before the first month are in its
-- partition.
CREATE TABLE events (id BIGINT PRIMARY KEY, name TEXT)
PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (0));

-- For the text of all partitions.
SET SESSION group_concat_max_len = 100000;

WITH RECURSIVE months (month) AS (
  SELECT DATE'2026-11-01'
  UNION ALL
  SELECT month + INTERVAL 1 MONTH FROM months WHERE month < '2027-12-01'
)
SELECT CONCAT('ALTER TABLE events ADD PARTITION (', GROUP_CONCAT(
  'PARTITION p', DATE_FORMAT(month, '%Y_%m'),
  ' VALUES LESS THAN (', snowflake_floor_id(month + INTERVAL 1 MONTH), ')' ORDER BY month
), ')') INTO @add_months FROM months;
PREPARE add_months FROM @add_months;
EXECUTE add_months;

INSERT INTO events VALUES (900710334548459520, 'signed up');
SELECT name FROM events PARTITION (p2026_11); -- signed up

ALTER TABLE events DROP PARTITION p2026_11;
