-- A role for `edge-ldp console` that may read what its pages show, and nothing else. As the owner of the tables:
--   psql "dbname=fleet" -v reader=ldp_console -f postgres-readonly.sql
-- It may be run again, and must be after an upgrade that adds tables. The password is set apart: \password ldp_console
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
-- not `watched`: what is kept of single devices' codes to judge them by
GRANT SELECT ON edge_ldp_schema, facts, flushes, devices, groups, records, counts, count_deltas, presence,
    presence_deltas, refused, refused_deltas, plans, looks, marks, released_designs, released_chunks, released_values, held_counts, rolled, sums, audit
    TO :"reader";
COMMIT;
