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
    pairs bytea NOT NULL
);
CREATE TABLE public.counts (
    stream integer NOT NULL,
    epoch bigint NOT NULL,
    bucket bigint NOT NULL,
    pairs bytea NOT NULL
);
CREATE TABLE public.devices (
    device text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    software text NOT NULL,
    seen_s bigint NOT NULL
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
    id uuid NOT NULL,
    at_s bigint NOT NULL,
    made timestamp with time zone DEFAULT now() NOT NULL
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
    slots bigint NOT NULL
);
CREATE TABLE public.presence_deltas (
    stream integer NOT NULL,
    bucket bigint NOT NULL,
    slots bigint NOT NULL
);
CREATE TABLE public.records (
    device text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    highest bigint NOT NULL,
    last_slot bigint NOT NULL,
    floor bigint NOT NULL,
    gaps bytea NOT NULL,
    digests bytea NOT NULL,
    first_slot bigint,
    counted bigint NOT NULL,
    rejected bigint NOT NULL,
    duplicates bigint NOT NULL,
    conflicts bigint NOT NULL,
    created bigint NOT NULL,
    expired bigint NOT NULL,
    first bigint NOT NULL,
    next bigint NOT NULL,
    before bigint NOT NULL
)
WITH (fillfactor='70');
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
CREATE TABLE public.watched (
    device text NOT NULL COLLATE pg_catalog."C",
    stream integer NOT NULL,
    law text NOT NULL COLLATE pg_catalog."C",
    kept bytea NOT NULL
)
WITH (fillfactor='70');
INSERT INTO public.count_deltas VALUES (1, 1, 1, '\x07000100000000000000');
INSERT INTO public.count_deltas VALUES (1, 1, 2, '\x09000100000000000000');
INSERT INTO public.counts VALUES (1, 1, 1, '\x07000200000000000000');
INSERT INTO public.counts VALUES (1, 1, 2, '\x02000100000000000000');
INSERT INTO public.counts VALUES (1, 2, 1, '\x0700ffff01000000000000000100000000000000');
INSERT INTO public.devices VALUES ('other', 'unknown', '', 1700000000);
INSERT INTO public.devices VALUES ('home', 'online', '0.1', 1700000000);
INSERT INTO public.edge_ldp_schema VALUES (1);
INSERT INTO public.enrolled VALUES (2);
INSERT INTO public.facts VALUES ('fleet', 'demo');
INSERT INTO public.facts VALUES ('stream 1', 'power in W, 4 slots of 900 s');
INSERT INTO public.flushes VALUES ('88abe856-a75e-4ad2-a78f-2aecb79e3e16', 1700000000, '2026-11-21 13:02:05.326745+00');
INSERT INTO public.flushes VALUES ('a1c6f4ea-7ebf-4693-bc16-d4bf16b51254', 1700000000, '2026-11-21 13:02:05.3354+00');
INSERT INTO public.flushes VALUES ('2f8328d6-5fd0-4f03-b672-de7c323ed855', 1700000000, '2026-11-21 13:02:05.340216+00');
INSERT INTO public.looks VALUES (1, 5, '\x6c6f6f6b');
INSERT INTO public.marks VALUES ('home', 1, 1700000000, 1700000000, 1, 'code 7', 20, 40, 0.25, 1e-09);
INSERT INTO public.plans VALUES (1, 1, 1700000000, '\x706c616e');
INSERT INTO public.presence VALUES (1, 1, 3);
INSERT INTO public.presence VALUES (1, 2, 1);
INSERT INTO public.presence_deltas VALUES (1, 2, 2);
INSERT INTO public.records VALUES ('home', 1, 9, 1900000, 2, '\x030000000400000000000000ffffffff0600000006000000f9f91c00ecfb1c00', '\x080000003132333435363738090000006162636465666768', 1898000, 50, 4, 3, 2, 60, 1, 2, 11, 5);
INSERT INTO public.refused VALUES ('late', 1, 1, 96);
INSERT INTO public.refused_deltas VALUES ('late', 1, 1, 4);
INSERT INTO public.watched VALUES ('home', 1, 'law', '\x6b657074');
SELECT pg_catalog.setval('public.released_designs_id_seq', 1, false);
ALTER TABLE ONLY public.counts
    ADD CONSTRAINT counts_pkey PRIMARY KEY (stream, epoch, bucket);
ALTER TABLE ONLY public.devices
    ADD CONSTRAINT devices_pkey PRIMARY KEY (device);
ALTER TABLE ONLY public.facts
    ADD CONSTRAINT facts_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.flushes
    ADD CONSTRAINT flushes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.looks
    ADD CONSTRAINT looks_pkey PRIMARY KEY (stream, at_s);
ALTER TABLE ONLY public.marks
    ADD CONSTRAINT marks_pkey PRIMARY KEY (device, stream);
ALTER TABLE ONLY public.plans
    ADD CONSTRAINT plans_pkey PRIMARY KEY (stream, epoch);
ALTER TABLE ONLY public.presence
    ADD CONSTRAINT presence_pkey PRIMARY KEY (stream, bucket);
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
ALTER TABLE ONLY public.watched
    ADD CONSTRAINT watched_pkey PRIMARY KEY (device, stream, law);
ALTER TABLE ONLY public.released_chunks
    ADD CONSTRAINT released_chunks_design_fkey FOREIGN KEY (design) REFERENCES public.released_designs(id);
