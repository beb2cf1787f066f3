-- A role for `edge-ldp console` that may read what its pages show, and nothing else. As the owner of the tables:
--   psql "dbname=fleet" -v reader=ldp_console -f postgres-readonly.sql
-- It may be run again, and must be after a restore, and an upgrade that adds tables. The password is set apart: \password ldp_console
\set ON_ERROR_STOP on
SELECT format('CREATE ROLE %I LOGIN', :'reader')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'reader') \gexec
BEGIN;
ALTER ROLE :"reader" NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT 40;
ALTER ROLE :"reader" SET default_transaction_read_only = on;
ALTER ROLE :"reader" SET statement_timeout = '30s';
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM :"reader";
REVOKE CREATE ON SCHEMA public FROM :"reader";
GRANT USAGE ON SCHEMA public TO :"reader";
-- not `watched`: what is kept of single devices' codes to judge them by; nor held_counts, codes of devices in
-- quarantine: pages show how many reports these are, so in its place the role finds one code with all of them
ALTER ROLE :"reader" SET search_path = "$user", public;
CREATE SCHEMA IF NOT EXISTS :"reader";
CREATE OR REPLACE FUNCTION :"reader".held() RETURNS TABLE
    (device text, stream integer, epoch bigint, grp integer, bucket bigint, pairs bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    WITH forms AS (  -- as aggregator.store.forms.pack_pairs writes them; text, so that tables can be dropped
        SELECT device, stream, grp, pairs, 1 << (get_byte(pairs, 0) & 15) AS width,
            CASE WHEN get_byte(pairs, 0) & 16 > 0 THEN 0 ELSE 2 END AS code FROM held_counts
    ), sums AS (
        SELECT device, stream, grp, sum(
            get_byte(pairs, length(pairs) - size * width + at)::bigint << (8 * (at % width))
        )::bigint AS total
        FROM forms, LATERAL (SELECT (length(pairs) - 1) / (width + code) AS size) AS sized,
            generate_series(0, size * width - 1) AS at GROUP BY 1, 2, 3
    )
    SELECT device, stream, 0::bigint, grp, 0::bigint, (
        SELECT '\x13'::bytea || decode(string_agg(lpad(to_hex((total >> (8 * at)) & 255), 2, '0'), '' ORDER BY at), 'hex')
        FROM generate_series(0, 7) AS at
    ) FROM sums
$$;
CREATE OR REPLACE VIEW :"reader".held_counts AS SELECT * FROM :"reader".held();
REVOKE ALL ON FUNCTION :"reader".held() FROM PUBLIC;
GRANT USAGE ON SCHEMA :"reader" TO :"reader";
GRANT EXECUTE ON FUNCTION :"reader".held() TO :"reader";
GRANT SELECT ON :"reader".held_counts TO :"reader";
GRANT SELECT ON edge_ldp_schema, facts, flushes, devices, groups, records, counts, count_deltas, presence,
    presence_deltas, refused, refused_deltas, plans, looks, marks, released_designs, released_chunks, released_values, rolled, sums, audit, period_totals
    TO :"reader";
COMMIT;
