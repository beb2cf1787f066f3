SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.count_deltas (
    stream integer NOT NULL,
    epoch bigint NOT NULL,
    bucket bigint NOT NULL,
    pairs bytea NOT NULL,
    grp integer DEFAULT 0 NOT NULL
)
WITH (toast_tuple_target='8160');
ALTER TABLE ONLY public.count_deltas ALTER COLUMN pairs SET STORAGE EXTERNAL;
CREATE TABLE public.counts (
    stream integer NOT NULL,
    epoch bigint NOT NULL,
    bucket bigint NOT NULL,
    pairs bytea NOT NULL,
    grp integer DEFAULT 0 NOT NULL
)
WITH (toast_tuple_target='8160');
ALTER TABLE ONLY public.counts ALTER COLUMN pairs SET STORAGE EXTERNAL;
CREATE TABLE public.devices (
    device text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    software text NOT NULL,
    seen_s bigint NOT NULL,
    grp integer DEFAULT 0 NOT NULL,
    enrolled_s bigint,
    revoked_s bigint,
    held_s bigint,
    cleared_s bigint,
    refusals text DEFAULT ''::text NOT NULL
)
WITH (fillfactor='80');
CREATE TABLE public.edge_ldp_schema (
    version integer NOT NULL
);
CREATE TABLE public.enrolled (
    devices bigint NOT NULL
);
CREATE TABLE public.facts (
    name text NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.flushes (
    day integer NOT NULL,
    id uuid NOT NULL,
    at_s bigint NOT NULL,
    made timestamp with time zone DEFAULT now() NOT NULL
)
PARTITION BY LIST (day);
CREATE TABLE public.flushes_0 (
    day integer NOT NULL,
    id uuid NOT NULL,
    at_s bigint NOT NULL,
    made timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.flushes_1 (
    day integer NOT NULL,
    id uuid NOT NULL,
    at_s bigint NOT NULL,
    made timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.flushes_2 (
    day integer NOT NULL,
    id uuid NOT NULL,
    at_s bigint NOT NULL,
    made timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.flushes_3 (
    day integer NOT NULL,
    id uuid NOT NULL,
    at_s bigint NOT NULL,
    made timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.flushes_4 (
    day integer NOT NULL,
    id uuid NOT NULL,
    at_s bigint NOT NULL,
    made timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.flushes_5 (
    day integer NOT NULL,
    id uuid NOT NULL,
    at_s bigint NOT NULL,
    made timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.flushes_6 (
    day integer NOT NULL,
    id uuid NOT NULL,
    at_s bigint NOT NULL,
    made timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.groups (
    id integer NOT NULL,
    name text NOT NULL
);
CREATE TABLE public.held_counts (
    device text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    epoch bigint NOT NULL,
    grp integer NOT NULL,
    bucket bigint NOT NULL,
    pairs bytea NOT NULL
)
WITH (toast_tuple_target='8160');
ALTER TABLE ONLY public.held_counts ALTER COLUMN pairs SET STORAGE EXTERNAL;
CREATE TABLE public.held_presence (
    device text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    bucket bigint NOT NULL,
    grp integer NOT NULL,
    slots bigint NOT NULL
);
CREATE TABLE public.looks (
    stream integer NOT NULL,
    at_s bigint NOT NULL,
    payload bytea NOT NULL
);
CREATE TABLE public.marks (
    device text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    first_s bigint NOT NULL,
    last_s bigint NOT NULL,
    times bigint NOT NULL,
    name text NOT NULL,
    seen bigint NOT NULL,
    reports bigint NOT NULL,
    bound double precision NOT NULL,
    chance double precision NOT NULL
);
CREATE TABLE public.plans (
    stream integer NOT NULL,
    epoch bigint NOT NULL,
    issued_s bigint NOT NULL,
    payload bytea NOT NULL
);
CREATE TABLE public.presence (
    stream integer NOT NULL,
    bucket bigint NOT NULL,
    slots bigint NOT NULL,
    grp integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.presence_deltas (
    stream integer NOT NULL,
    bucket bigint NOT NULL,
    slots bigint NOT NULL,
    grp integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.records (
    device text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    record bytea NOT NULL
)
WITH (fillfactor='85');
CREATE TABLE public.refused (
    reason text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    messages bigint NOT NULL,
    reports bigint NOT NULL
);
CREATE TABLE public.refused_deltas (
    reason text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    messages bigint NOT NULL,
    reports bigint NOT NULL
);
CREATE TABLE public.released_chunks (
    device text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    series bigint NOT NULL,
    chunk bigint NOT NULL,
    theta bigint NOT NULL,
    design bigint NOT NULL
);
CREATE TABLE public.released_designs (
    id bigint NOT NULL,
    design bytea NOT NULL
);
ALTER TABLE public.released_designs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.released_designs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.released_values (
    device text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    slot bigint NOT NULL,
    series bigint NOT NULL,
    "position" bigint NOT NULL,
    value bigint NOT NULL
);
CREATE TABLE public.rolled (
    stream integer NOT NULL,
    what integer NOT NULL,
    until bigint NOT NULL
);
CREATE TABLE public.spooled (
    worker text NOT NULL COLLATE pg_catalog."C",
    flush uuid NOT NULL
);
CREATE TABLE public.sums (
    stream integer NOT NULL,
    bucket bigint NOT NULL,
    epoch bigint NOT NULL,
    grp integer NOT NULL,
    sums bytea NOT NULL
);
CREATE TABLE public.watched (
    device text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    law text NOT NULL COLLATE pg_catalog."C",
    kept bytea NOT NULL
)
WITH (fillfactor='70');
ALTER TABLE ONLY public.flushes ATTACH PARTITION public.flushes_0 FOR VALUES IN (0);
ALTER TABLE ONLY public.flushes ATTACH PARTITION public.flushes_1 FOR VALUES IN (1);
ALTER TABLE ONLY public.flushes ATTACH PARTITION public.flushes_2 FOR VALUES IN (2);
ALTER TABLE ONLY public.flushes ATTACH PARTITION public.flushes_3 FOR VALUES IN (3);
ALTER TABLE ONLY public.flushes ATTACH PARTITION public.flushes_4 FOR VALUES IN (4);
ALTER TABLE ONLY public.flushes ATTACH PARTITION public.flushes_5 FOR VALUES IN (5);
ALTER TABLE ONLY public.flushes ATTACH PARTITION public.flushes_6 FOR VALUES IN (6);
INSERT INTO public.count_deltas VALUES (1, 1, 1, '\x00070001', 0);
INSERT INTO public.devices VALUES ('other', 'unknown', '', 1700000000, 0, 1700000000, NULL, NULL, NULL, '');
INSERT INTO public.devices VALUES ('home', 'online', '1.0', 1700000000, 0, 1700000000, NULL, NULL, NULL, 'ratio');
INSERT INTO public.edge_ldp_schema VALUES (4);
INSERT INTO public.enrolled VALUES (2);
INSERT INTO public.facts VALUES ('fleet', 'demo');
INSERT INTO public.flushes_4 VALUES (4, '01a208f6-db95-7b57-96cd-6b894d91f964', 1700000000, '2026-11-23 15:12:05.526623+00');
INSERT INTO public.groups VALUES (0, '');
INSERT INTO public.plans VALUES (1, 1, 1700000000, '\x706c616e');
INSERT INTO public.presence_deltas VALUES (1, 1, 2, 0);
INSERT INTO public.records VALUES ('home', 1, '\xdc001009ce001cfde002920100c4103132333435363738616263646566676892940304ffc0940606ce001cf9f8ce001cfbeccd07d0320403020a01020205');
SELECT pg_catalog.setval('public.released_designs_id_seq', 1, false);
ALTER TABLE ONLY public.counts
    ADD CONSTRAINT counts_pkey PRIMARY KEY (stream, epoch, bucket, grp);
ALTER TABLE ONLY public.devices
    ADD CONSTRAINT devices_pkey PRIMARY KEY (device);
ALTER TABLE ONLY public.facts
    ADD CONSTRAINT facts_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.flushes
    ADD CONSTRAINT flushes_pkey PRIMARY KEY (day, id);
ALTER TABLE ONLY public.flushes_0
    ADD CONSTRAINT flushes_0_pkey PRIMARY KEY (day, id);
ALTER TABLE ONLY public.flushes_1
    ADD CONSTRAINT flushes_1_pkey PRIMARY KEY (day, id);
ALTER TABLE ONLY public.flushes_2
    ADD CONSTRAINT flushes_2_pkey PRIMARY KEY (day, id);
ALTER TABLE ONLY public.flushes_3
    ADD CONSTRAINT flushes_3_pkey PRIMARY KEY (day, id);
ALTER TABLE ONLY public.flushes_4
    ADD CONSTRAINT flushes_4_pkey PRIMARY KEY (day, id);
ALTER TABLE ONLY public.flushes_5
    ADD CONSTRAINT flushes_5_pkey PRIMARY KEY (day, id);
ALTER TABLE ONLY public.flushes_6
    ADD CONSTRAINT flushes_6_pkey PRIMARY KEY (day, id);
ALTER TABLE ONLY public.groups
    ADD CONSTRAINT groups_name_key UNIQUE (name);
ALTER TABLE ONLY public.groups
    ADD CONSTRAINT groups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.held_counts
    ADD CONSTRAINT held_counts_pkey PRIMARY KEY (device, stream, epoch, bucket, grp);
ALTER TABLE ONLY public.held_presence
    ADD CONSTRAINT held_presence_pkey PRIMARY KEY (device, stream, bucket, grp);
ALTER TABLE ONLY public.looks
    ADD CONSTRAINT looks_pkey PRIMARY KEY (stream, at_s);
ALTER TABLE ONLY public.marks
    ADD CONSTRAINT marks_pkey PRIMARY KEY (device, stream);
ALTER TABLE ONLY public.plans
    ADD CONSTRAINT plans_pkey PRIMARY KEY (stream, epoch);
ALTER TABLE ONLY public.presence
    ADD CONSTRAINT presence_pkey PRIMARY KEY (stream, bucket, grp);
ALTER TABLE ONLY public.records
    ADD CONSTRAINT records_pkey PRIMARY KEY (device, stream);
ALTER TABLE ONLY public.refused
    ADD CONSTRAINT refused_pkey PRIMARY KEY (reason, stream);
ALTER TABLE ONLY public.released_chunks
    ADD CONSTRAINT released_chunks_pkey PRIMARY KEY (device, stream, series, chunk);
ALTER TABLE ONLY public.released_designs
    ADD CONSTRAINT released_designs_design_key UNIQUE (design);
ALTER TABLE ONLY public.released_designs
    ADD CONSTRAINT released_designs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.released_values
    ADD CONSTRAINT released_values_pkey PRIMARY KEY (device, stream, slot);
ALTER TABLE ONLY public.rolled
    ADD CONSTRAINT rolled_pkey PRIMARY KEY (stream, what);
ALTER TABLE ONLY public.spooled
    ADD CONSTRAINT spooled_pkey PRIMARY KEY (worker);
ALTER TABLE ONLY public.sums
    ADD CONSTRAINT sums_pkey PRIMARY KEY (stream, bucket, epoch, grp);
ALTER TABLE ONLY public.watched
    ADD CONSTRAINT watched_pkey PRIMARY KEY (device, stream, law);
CREATE INDEX flushes_at_s ON ONLY public.flushes USING btree (at_s);
CREATE INDEX flushes_0_at_s_idx ON public.flushes_0 USING btree (at_s);
CREATE INDEX flushes_made ON ONLY public.flushes USING btree (made);
CREATE INDEX flushes_0_made_idx ON public.flushes_0 USING btree (made);
CREATE INDEX flushes_1_at_s_idx ON public.flushes_1 USING btree (at_s);
CREATE INDEX flushes_1_made_idx ON public.flushes_1 USING btree (made);
CREATE INDEX flushes_2_at_s_idx ON public.flushes_2 USING btree (at_s);
CREATE INDEX flushes_2_made_idx ON public.flushes_2 USING btree (made);
CREATE INDEX flushes_3_at_s_idx ON public.flushes_3 USING btree (at_s);
CREATE INDEX flushes_3_made_idx ON public.flushes_3 USING btree (made);
CREATE INDEX flushes_4_at_s_idx ON public.flushes_4 USING btree (at_s);
CREATE INDEX flushes_4_made_idx ON public.flushes_4 USING btree (made);
CREATE INDEX flushes_5_at_s_idx ON public.flushes_5 USING btree (at_s);
CREATE INDEX flushes_5_made_idx ON public.flushes_5 USING btree (made);
CREATE INDEX flushes_6_at_s_idx ON public.flushes_6 USING btree (at_s);
CREATE INDEX flushes_6_made_idx ON public.flushes_6 USING btree (made);
ALTER INDEX public.flushes_at_s ATTACH PARTITION public.flushes_0_at_s_idx;
ALTER INDEX public.flushes_made ATTACH PARTITION public.flushes_0_made_idx;
ALTER INDEX public.flushes_pkey ATTACH PARTITION public.flushes_0_pkey;
ALTER INDEX public.flushes_at_s ATTACH PARTITION public.flushes_1_at_s_idx;
ALTER INDEX public.flushes_made ATTACH PARTITION public.flushes_1_made_idx;
ALTER INDEX public.flushes_pkey ATTACH PARTITION public.flushes_1_pkey;
ALTER INDEX public.flushes_at_s ATTACH PARTITION public.flushes_2_at_s_idx;
ALTER INDEX public.flushes_made ATTACH PARTITION public.flushes_2_made_idx;
ALTER INDEX public.flushes_pkey ATTACH PARTITION public.flushes_2_pkey;
ALTER INDEX public.flushes_at_s ATTACH PARTITION public.flushes_3_at_s_idx;
ALTER INDEX public.flushes_made ATTACH PARTITION public.flushes_3_made_idx;
ALTER INDEX public.flushes_pkey ATTACH PARTITION public.flushes_3_pkey;
ALTER INDEX public.flushes_at_s ATTACH PARTITION public.flushes_4_at_s_idx;
ALTER INDEX public.flushes_made ATTACH PARTITION public.flushes_4_made_idx;
ALTER INDEX public.flushes_pkey ATTACH PARTITION public.flushes_4_pkey;
ALTER INDEX public.flushes_at_s ATTACH PARTITION public.flushes_5_at_s_idx;
ALTER INDEX public.flushes_made ATTACH PARTITION public.flushes_5_made_idx;
ALTER INDEX public.flushes_pkey ATTACH PARTITION public.flushes_5_pkey;
ALTER INDEX public.flushes_at_s ATTACH PARTITION public.flushes_6_at_s_idx;
ALTER INDEX public.flushes_made ATTACH PARTITION public.flushes_6_made_idx;
ALTER INDEX public.flushes_pkey ATTACH PARTITION public.flushes_6_pkey;
ALTER TABLE ONLY public.released_chunks
    ADD CONSTRAINT released_chunks_design_fkey FOREIGN KEY (design) REFERENCES public.released_designs(id);
