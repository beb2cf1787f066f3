-- Views for other programs, of what `edge-ldp aggregator export` writes, and a role that reads these and no table. As the owner of
-- the tables: psql "dbname=fleet" -v reader=ldp_answers -f postgres-answers.sql   It may be run again.
-- -v groups=north,south: a role that finds these groups alone, in ldp_answers.hours, .days and .sums (of the role's name).
\set ON_ERROR_STOP on
SELECT format('CREATE ROLE %I LOGIN', :'reader')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'reader') \gexec
BEGIN;
ALTER ROLE :"reader" NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT 40;
ALTER ROLE :"reader" SET default_transaction_read_only = on;
ALTER ROLE :"reader" SET statement_timeout = '30s';
CREATE SCHEMA IF NOT EXISTS edge_ldp_answers;
CREATE TABLE IF NOT EXISTS edge_ldp_answers.spans (
    stream text, "group" text, length text, from_at timestamptz, unit text NOT NULL,  -- group '*': all devices
    n bigint, device_slots bigint, mean float8, low float8, high float8,
    energy_kwh float8, energy_kwh_low float8, energy_kwh_high float8,
    withheld boolean NOT NULL, made_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (stream, "group", length, from_at),
    CHECK (NOT withheld OR num_nonnulls(n, device_slots, mean, low, high, energy_kwh, energy_kwh_low, energy_kwh_high) = 0)
);
CREATE OR REPLACE VIEW edge_ldp_answers.hours AS SELECT stream, "group", from_at, unit, n, device_slots, mean, low, high,
    energy_kwh, energy_kwh_low, energy_kwh_high, withheld, made_at FROM edge_ldp_answers.spans WHERE length = 'hour';
CREATE OR REPLACE VIEW edge_ldp_answers.days AS SELECT stream, "group", from_at, unit, n, device_slots, mean, low, high,
    energy_kwh, energy_kwh_low, energy_kwh_high, withheld, made_at FROM edge_ldp_answers.spans WHERE length = 'day';
CREATE TABLE IF NOT EXISTS edge_ldp_answers.periods (  -- homes' own sums, many together: beside spans, never added to them
    stream text, "group" text, from_at timestamptz, to_at timestamptz, unit text NOT NULL,
    homes bigint, slots bigint, coverage float8, mean float8, low float8, high float8,
    energy_kwh float8, energy_kwh_low float8, energy_kwh_high float8, full_kwh float8, full_kwh_low float8, full_kwh_high float8,
    withheld boolean NOT NULL, made_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (stream, "group", from_at, to_at),
    CHECK (NOT withheld OR num_nonnulls(homes, slots, coverage, mean, low, high, energy_kwh, energy_kwh_low, energy_kwh_high,
        full_kwh, full_kwh_low, full_kwh_high) = 0)
);
ALTER TABLE edge_ldp_answers.periods DROP CONSTRAINT IF EXISTS withheld_volumes,
    ADD COLUMN IF NOT EXISTS volume_m3 float8, ADD COLUMN IF NOT EXISTS volume_m3_low float8, ADD COLUMN IF NOT EXISTS volume_m3_high float8,
    ADD COLUMN IF NOT EXISTS full_m3 float8, ADD COLUMN IF NOT EXISTS full_m3_low float8, ADD COLUMN IF NOT EXISTS full_m3_high float8,
    ADD CONSTRAINT withheld_volumes CHECK (NOT withheld OR num_nonnulls(volume_m3, volume_m3_low, volume_m3_high, full_m3, full_m3_low,
        full_m3_high) = 0);
CREATE OR REPLACE VIEW edge_ldp_answers.sums AS SELECT * FROM edge_ldp_answers.periods;
REVOKE ALL ON ALL TABLES IN SCHEMA public, edge_ldp_answers FROM :"reader";
REVOKE CREATE ON SCHEMA public FROM :"reader";
DROP VIEW IF EXISTS :"reader".hours, :"reader".days, :"reader".sums;
REVOKE ALL ON SCHEMA edge_ldp_answers FROM :"reader";
\set place edge_ldp_answers
\if :{?groups}
\set place :reader
CREATE SCHEMA IF NOT EXISTS :"reader";
CREATE VIEW :"reader".hours WITH (security_barrier) AS
    SELECT * FROM edge_ldp_answers.hours WHERE "group" = ANY (string_to_array(:'groups', ','));
CREATE VIEW :"reader".days WITH (security_barrier) AS
    SELECT * FROM edge_ldp_answers.days WHERE "group" = ANY (string_to_array(:'groups', ','));
CREATE VIEW :"reader".sums WITH (security_barrier) AS
    SELECT * FROM edge_ldp_answers.sums WHERE "group" = ANY (string_to_array(:'groups', ','));
\endif
GRANT USAGE ON SCHEMA :"place" TO :"reader";
GRANT SELECT ON :"place".hours, :"place".days, :"place".sums TO :"reader";
COMMIT;
