'use strict';
// The SQL that `snowdrift sql` prints, for each database: texts by name, their script, and a month's partition.

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const LARGEST_ID = 2n ** 63n - 1n;

const RULE = '13 of 0-9 and A-Z without I, L, O and U, the first 0 to 7';
/** An operator and its right side, unless that is 1. */
const by = (operator, value) => (value === 1 ? '' : ` ${operator} ${value}`);

/** An expression of each of an ID's 13 characters, high to low. */
const eachPlace = (expression, joint) =>
  Array.from({ length: 13 }, (_, n) => expression(n + 1, 60 - 5 * n)).join(`\n  ${joint} `);

const POSTGRES_TRAITS = 'LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE';

function postgresTexts({ epoch, tickMs, shift, lastMs, lastId, epochIso, lastIso }) {
  const refusal = (text, value) => `RAISE EXCEPTION '${text}', ${value} USING ERRCODE = '22023';`;
  return {
    snowflake_time: `CREATE FUNCTION snowflake_time(id bigint) RETURNS timestamptz
${POSTGRES_TRAITS} AS $$
DECLARE
  ms bigint;
BEGIN
  IF id NOT BETWEEN 0 AND ${lastId} THEN
    ${refusal(`the ID % is not one of this layout: 0 to ${lastId}`, 'id')}
  END IF;
  ms := (id >> ${shift})${by('*', tickMs)} + ${epoch};
  -- Days and milliseconds, since an interval times a large number is rounded.
  RETURN (timestamp '1970-01-01' + ms / 86400000 * interval '1 day'
    + ms % 86400000 * interval '1 millisecond') AT TIME ZONE 'UTC';
END $$`,
    snowflake_floor_id: `CREATE FUNCTION snowflake_floor_id(moment timestamptz) RETURNS bigint
${POSTGRES_TRAITS} AS $$
DECLARE
  ms numeric := round(extract(epoch FROM date_trunc('milliseconds', moment AT TIME ZONE 'UTC')) * 1000);
BEGIN
  IF ms NOT BETWEEN ${epoch} AND ${lastMs} THEN
    ${refusal(`the time % is outside this layout: ${epochIso} to ${lastIso}`, 'moment')}
  END IF;
  RETURN (ms - ${epoch})::bigint${by('/', tickMs)} << ${shift};
END $$`,
    snowflake_to_base32: `CREATE FUNCTION snowflake_to_base32(id bigint) RETURNS text
${POSTGRES_TRAITS} AS $$
DECLARE
  letters CONSTANT text := '${ALPHABET}';
BEGIN
  IF id < 0 THEN
    ${refusal(`the ID % is out of range: 0 to ${LARGEST_ID}`, 'id')}
  END IF;
  RETURN ${eachPlace((_, shift) => `substr(letters, (id >> ${shift} & 31)::int + 1, 1)`, '||')};
END $$`,
    snowflake_from_base32: `CREATE FUNCTION snowflake_from_base32(base32 text) RETURNS bigint
${POSTGRES_TRAITS} AS $$
DECLARE
  letters CONSTANT text := '${ALPHABET}';
BEGIN
  IF base32 COLLATE "C" !~ '^[0-7][${ALPHABET}]{12}$' THEN
    ${refusal(`"%" is not an ID in base32: ${RULE}`, 'base32')}
  END IF;
  RETURN ${eachPlace((place, shift) => `((strpos(letters, substr(base32, ${place}, 1)) - 1)::bigint << ${shift})`, '|')};
END $$`,
  };
}

/** INVOKER: also after the user who created it is dropped. */
const MYSQL_TRAITS = 'DETERMINISTIC NO SQL SQL SECURITY INVOKER';

/** A time as a literal of MariaDB and MySQL. */
const mysqlTime = (iso) => `TIMESTAMP'${iso.replace('T', ' ').replace('Z', '')}'`;

function mysqlTexts({ tickMs, tickIds, lastId, epochIso, lastIso }) {
  // SIGNAL takes no expression. At most 128 characters.
  const fault = (text, value, rest) => `DECLARE fault VARCHAR(128) DEFAULT
    CONCAT('${text}', ${value}, '${rest}');`;
  const refuse = `SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = fault;`;
  const last = mysqlTime(lastIso.replace('Z', '999Z'));
  return {
    snowflake_time: `CREATE FUNCTION snowflake_time(id BIGINT) RETURNS DATETIME(3)
${MYSQL_TRAITS}
BEGIN
  ${fault('the ID ', 'id', ` is not one of this layout: 0 to ${lastId}`)}
  IF id NOT BETWEEN 0 AND ${lastId} THEN
    ${refuse}
  END IF;
  RETURN ${mysqlTime(epochIso)} + INTERVAL (id DIV ${tickIds}) * ${tickMs * 1000} MICROSECOND;
END`,
    snowflake_floor_id: `CREATE FUNCTION snowflake_floor_id(moment DATETIME(6)) RETURNS BIGINT
${MYSQL_TRAITS}
BEGIN
  ${fault('the time ', 'moment', ` is outside this layout: ${epochIso} to ${lastIso}`)}
  IF moment NOT BETWEEN ${mysqlTime(epochIso)} AND ${last} THEN
    ${refuse}
  END IF;
  RETURN TIMESTAMPDIFF(MICROSECOND, ${mysqlTime(epochIso)}, moment) DIV ${tickMs * 1000} * ${tickIds};
END`,
    snowflake_to_base32: `CREATE FUNCTION snowflake_to_base32(id BIGINT) RETURNS CHAR(13) CHARACTER SET ascii COLLATE ascii_bin
${MYSQL_TRAITS}
BEGIN
  DECLARE letters CHAR(32) DEFAULT '${ALPHABET}';
  ${fault('the ID ', 'id', ` is out of range: 0 to ${LARGEST_ID}`)}
  IF id < 0 THEN
    ${refuse}
  END IF;
  RETURN CONCAT(${eachPlace((_, shift) => `SUBSTRING(letters, (id >> ${shift} & 31) + 1, 1)`, ', ')});
END`,
    snowflake_from_base32: `CREATE FUNCTION snowflake_from_base32(base32 TEXT) RETURNS BIGINT
${MYSQL_TRAITS}
BEGIN
  DECLARE id BIGINT DEFAULT 0;
  DECLARE place INT DEFAULT 1;
  DECLARE digit INT;
  ${fault('"', 'LEFT(base32, 14)', `" is not an ID in base32: ${RULE}`)}
  WHILE place <= 13 DO
    SET digit = LOCATE(CAST(SUBSTRING(base32, place, 1) AS BINARY), '${ALPHABET}');
    IF CHAR_LENGTH(base32) <> 13 OR digit = 0 OR (place = 1 AND digit > 8) THEN
      ${refuse}
    END IF;
    SET id = id * 32 + (digit - 1);
    SET place = place + 1;
  END WHILE;
  RETURN id;
END`,
  };
}

function sqliteTexts({ epoch, tickMs, shift, lastMs, lastId }) {
  const isId = (last) => `typeof(id) = 'integer' AND id BETWEEN 0 AND ${last}`;
  const letter = (shift) => `substr('${ALPHABET}', (id >> ${shift} & 31) + 1, 1)`;
  const digit = (place) => `instr('${ALPHABET}', substr(:base32, ${place}, 1)) - 1`;
  return {
    time: `CASE WHEN ${isId(lastId)} THEN
  strftime('%Y-%m-%dT%H:%M:%fZ', ((id >> ${shift})${by('*', tickMs)} + ${epoch}) / 1000.0, 'unixepoch')
END`,
    floor_id: `(SELECT CASE WHEN ms BETWEEN ${epoch} AND ${lastMs} THEN (ms - ${epoch})${by('/', tickMs)} << ${shift} END
FROM (SELECT CAST(round((julianday(:moment) - 2440587.5) * 86400000) AS INTEGER) AS ms))`,
    to_base32: `CASE WHEN ${isId(LARGEST_ID)} THEN
  ${eachPlace((_, shift) => letter(shift), '||')}
END`,
    // length() of a text ends at a NUL.
    from_base32: `CASE WHEN typeof(:base32) = 'text'
  AND length(:base32) = 13 AND length(CAST(:base32 AS BLOB)) = 13
  AND :base32 NOT GLOB '*[^${ALPHABET}]*' AND :base32 < '8' THEN
  ${eachPlace((place, shift) => `(${digit(place)} << ${shift})`, '|')}
END`,
  };
}

const SQLITE_NOTES = {
  time: 'The time of an ID, as text in UTC. Put a column of integers, or CAST(column AS INTEGER), in place of id.',
  floor_id: 'The smallest ID of a time. :moment is a time as in the date functions of SQLite.',
  to_base32: 'An ID in base32.',
  from_base32: 'The ID of a text in base32.',
};

function sqliteScript(expressions) {
  const noted = Object.entries(expressions).map(
    ([name, sql]) => `-- ${SQLITE_NOTES[name]}\n${sql}`,
  );
  return `-- Expressions. Each is NULL for a value that is not an ID or time of this layout.\n\n${noted.join('\n\n')}`;
}

const quoted = (table, quote) => quote + table.replace('.', `${quote}.${quote}`) + quote;

const DATABASES = {
  postgres: {
    title: 'PostgreSQL',
    texts: postgresTexts,
    script: (statements) =>
      Object.values(statements)
        .map((sql) => `${sql};`)
        .join('\n\n'),
    partition: (table, { month, first, end }) =>
      `CREATE TABLE ${quoted(`${table}_${month.replace('-', '_')}`, '"')} PARTITION OF ${quoted(table, '"')} FOR VALUES FROM (${first}) TO (${end ?? 'MAXVALUE'})`,
  },
  mysql: {
    title: 'MySQL',
    texts: mysqlTexts,
    // The client ends a statement at each ; otherwise.
    script: (statements) =>
      ['DELIMITER //', ...Object.values(statements).map((sql) => `${sql} //`), 'DELIMITER ;'].join(
        '\n\n',
      ),
    partition: (table, { month, end }) =>
      `ALTER TABLE ${quoted(table, '`')} ADD PARTITION (PARTITION p${month.replace('-', '_')} VALUES LESS THAN ${end === null ? 'MAXVALUE' : `(${end})`})`,
  },
  sqlite: {
    title: 'SQLite',
    texts: sqliteTexts,
    script: sqliteScript,
  },
};

module.exports = { DATABASES };
