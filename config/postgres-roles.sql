-- Logins for colleagues who change the store by commands, beside the operator's, who owns the tables (docs/administration.md):
--   psql "dbname=fleet" -v login=ldp_alice -v role=installer -f postgres-roles.sql
-- role: installer: `devices` list, groups, enrol, group, import, export, invite, expire, revoke, reinstate;
--       privacy-officer: `devices` list, show, groups, erase, quarantine, expire, revoke, reinstate; `streams` retire, reinstate;
--       `plan` show, hold, release; `audit`.
--       Neither reads a figure. Who only reads: postgres-readonly.sql
-- -v groups=north,south: an installer of these alone, made where they are not there yet; whom he names no group for is of the
--       first. Of the rest he reads how many devices are enrolled, and which names are barred: erased, given up
-- It may be run again, and must be after a restore, and an upgrade that adds tables. The password is set apart: \password ldp_alice
\set ON_ERROR_STOP on
SELECT :'role' = 'installer' AS installs, :'role' = 'privacy-officer' AS erases \gset
\if :{?groups}
SELECT :'role' <> 'installer' OR NOT bool_and(name ~ '^[a-z0-9][a-z0-9_-]{0,62}$') AS wrong
FROM unnest(string_to_array(:'groups', ',')) AS name \gset
\if :wrong
\warn 'groups: expected names with commas between, of an installer: erasing a home, or holding a plan, is for all'
SELECT 1 / 0;
\endif
\endif
SELECT format('CREATE ROLE %I LOGIN', :'login')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'login') \gexec
BEGIN;
ALTER ROLE :"login" NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT 10;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM :"login";
REVOKE CREATE ON SCHEMA public FROM :"login";
GRANT USAGE ON SCHEMA public TO :"login";
ALTER ROLE :"login" SET search_path = public;
DROP VIEW IF EXISTS :"login".devices, :"login".groups;
GRANT SELECT ON edge_ldp_schema, facts TO :"login";
GRANT SELECT (id), INSERT ON audit TO :"login";  -- in which each change leaves who made it
\if :{?groups}
CREATE SCHEMA IF NOT EXISTS :"login";  -- what stands there is found in the place of the tables
INSERT INTO public.groups SELECT (SELECT max(id) FROM public.groups) + row_number() OVER (), name
    FROM unnest(string_to_array(:'groups', ',')) AS name WHERE name NOT IN (SELECT name FROM public.groups);
CREATE VIEW :"login".groups WITH (security_barrier) AS
    SELECT * FROM public.groups WHERE name = ANY (string_to_array(:'groups', ','));
CREATE VIEW :"login".devices WITH (security_barrier) AS
    SELECT * FROM public.devices WHERE grp IN (SELECT id FROM :"login".groups) WITH CHECK OPTION;
SELECT id AS first FROM public.groups WHERE name = split_part(:'groups', ',', 1) \gset
ALTER VIEW :"login".devices ALTER grp SET DEFAULT :first;
GRANT USAGE ON SCHEMA :"login" TO :"login";
ALTER ROLE :"login" SET search_path = "$user", public;
SET LOCAL search_path = :"login", public;
\endif
GRANT SELECT ON devices, groups TO :"login";
\if :installs
GRANT SELECT, UPDATE ON enrolled TO :"login";
GRANT INSERT ON devices TO :"login";
GRANT UPDATE (grp, revoked_s) ON devices TO :"login";
\if :{?groups}
\else
GRANT INSERT ON groups TO :"login";
\endif
\elif :erases
GRANT SELECT ON plans, looks, audit TO :"login";
GRANT INSERT, UPDATE, DELETE ON facts TO :"login";  -- who was erased; which plan is held, which stream retired
GRANT UPDATE (state, software, refusals, health, ages, heard, grp, cls, seen_s, enrolled_s, revoked_s, held_s, cleared_s)
    ON devices TO :"login";
GRANT UPDATE (command) ON audit TO :"login";
GRANT UPDATE (device) ON period_sums TO :"login";
GRANT UPDATE (record) ON records TO :"login";
-- whose reports are in a count, not what they are
SELECT format('GRANT SELECT (stream, epoch, grp, cls, bucket, reporters), UPDATE (reporters) ON %I TO %I', name, :'login')
FROM unnest('{counts,count_deltas,sums}'::text[]) AS name \gexec
SELECT format('GRANT SELECT, DELETE ON public.%I TO %I', table_name, :'login') FROM information_schema.columns
WHERE table_schema = 'public' AND column_name = 'device' AND table_name <> 'devices' \gexec
\else
\warn 'role: expected installer or privacy-officer'
SELECT 1 / 0;
\endif
COMMIT;
