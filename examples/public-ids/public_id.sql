-- Public IDs of snowdrift in PostgreSQL. A key is bytea, its raw 32 bytes. Both functions return NULL for a key of another length, an ID
-- below 0, or a text that is no public ID. With several keys:
-- coalesce(public_id_to_id(text, kind, new), public_id_to_id(text, kind, old))
--
-- Pass the key as a parameter of the statement: pg_stat_activity shows the statement's text. A server that logs statements also
-- logs parameters, unless log_parameter_max_length is 0.

CREATE EXTENSION pgcrypto;

CREATE FUNCTION public_id(id bigint, kind text, key bytea) RETURNS text
LANGUAGE sql IMMUTABLE STRICT SET search_path FROM CURRENT AS $$
  WITH block AS (
    SELECT encrypt(
      int8send(id) || substring(hmac(convert_to(kind, 'UTF8'), key, 'sha256') FOR 8), key, 'aes-ecb/pad:none'
    ) AS bytes WHERE id >= 0 AND octet_length(key) = 32
  ), bits AS (
    SELECT B'00' || ('x' || encode(bytes, 'hex'))::bit(128) AS all_bits FROM block
  )
  SELECT kind || '_' || string_agg(
    substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(all_bits FROM 5 * n + 1 FOR 5)::bit(5)::int, 1), '' ORDER BY n
  ) FROM bits, generate_series(0, 25) AS n
$$;

CREATE FUNCTION public_id_to_id(public_id text, kind text, key bytea) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT SET search_path FROM CURRENT AS $$
  WITH bits AS (
    SELECT string_agg(
      (strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(right(public_id, 26), n, 1)) - 1)::bit(5)::text, '' ORDER BY n
    )::bit(130) AS all_bits FROM generate_series(1, 26) AS n
    WHERE octet_length(public_id) = octet_length(kind) + 27 AND octet_length(key) = 32
  ), block AS (
    SELECT decrypt(
      int8send(substring(all_bits FROM 3 FOR 64)::bit(64)::bigint) || int8send(substring(all_bits FROM 67 FOR 64)::bit(64)::bigint),
      key, 'aes-ecb/pad:none'
    ) AS bytes FROM bits
  ), ids AS (
    SELECT ('x' || encode(substring(bytes FOR 8), 'hex'))::bit(64)::bigint AS id FROM block
  )
  SELECT id FROM ids WHERE id >= 0 AND public_id(id, kind, key) = public_id
$$;

SELECT public_id(900710334548443136, 'order', decode('19/Mdqkv6AafwkpXoPbNtdXOpFs/Wvih4oZd302tNY4=', 'base64')); -- order_5ytq3e9vz8pkyy9aknkvrxppf0
SELECT public_id_to_id('order_5ytq3e9vz8pkyy9aknkvrxppf0', 'order', decode('19/Mdqkv6AafwkpXoPbNtdXOpFs/Wvih4oZd302tNY4=', 'base64')); -- 900710334548443136
