PRAGMA application_id = 1279545409;
PRAGMA user_version = 4;
BEGIN TRANSACTION;
CREATE TABLE counts (
        stream INTEGER NOT NULL, epoch INTEGER NOT NULL, grp INTEGER NOT NULL,
        bucket INTEGER NOT NULL, pairs BLOB NOT NULL, PRIMARY KEY (stream, epoch, bucket, grp)
    ) WITHOUT ROWID;
INSERT INTO "counts" VALUES(1,1,0,1,X'00070001');
CREATE TABLE devices (
        device TEXT PRIMARY KEY, state TEXT NOT NULL, software TEXT NOT NULL,
        seen_s INTEGER NOT NULL
    , grp INTEGER NOT NULL DEFAULT 0, enrolled_s INTEGER, revoked_s INTEGER, held_s INTEGER, cleared_s INTEGER, refusals TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
INSERT INTO "devices" VALUES('home','online','1.0',1700000000,0,1700000000,NULL,NULL,NULL,'ratio');
INSERT INTO "devices" VALUES('other','unknown','',1700000000,0,1700000000,NULL,NULL,NULL,'');
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "facts" VALUES('committed_s','1700000000');
INSERT INTO "facts" VALUES('fleet','demo');
CREATE TABLE groups (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO "groups" VALUES(0,'');
CREATE TABLE held_counts (
        device TEXT NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, grp INTEGER NOT NULL,
        bucket INTEGER NOT NULL, pairs BLOB NOT NULL,
        PRIMARY KEY (device, stream, epoch, bucket, grp)
    ) WITHOUT ROWID;
CREATE TABLE held_presence (
        device TEXT NOT NULL, stream INTEGER NOT NULL, bucket INTEGER NOT NULL,
        grp INTEGER NOT NULL, slots INTEGER NOT NULL,
        PRIMARY KEY (device, stream, bucket, grp)
    ) WITHOUT ROWID;
CREATE TABLE looks (
        stream INTEGER NOT NULL, at_s INTEGER NOT NULL, payload BLOB NOT NULL,
        PRIMARY KEY (stream, at_s)
    ) WITHOUT ROWID;
CREATE TABLE marks (
        device TEXT NOT NULL, stream INTEGER NOT NULL, first_s INTEGER NOT NULL,
        last_s INTEGER NOT NULL, times INTEGER NOT NULL, name TEXT NOT NULL,
        seen INTEGER NOT NULL, reports INTEGER NOT NULL, bound REAL NOT NULL,
        chance REAL NOT NULL, PRIMARY KEY (device, stream)
    ) WITHOUT ROWID;
CREATE TABLE plans (
        stream INTEGER NOT NULL, epoch INTEGER NOT NULL, issued_s INTEGER NOT NULL,
        payload BLOB NOT NULL, PRIMARY KEY (stream, epoch)
    ) WITHOUT ROWID;
INSERT INTO "plans" VALUES(1,1,1700000000,X'706C616E');
CREATE TABLE presence (
        stream INTEGER NOT NULL, bucket INTEGER NOT NULL, grp INTEGER NOT NULL,
        slots INTEGER NOT NULL, PRIMARY KEY (stream, bucket, grp)
    ) WITHOUT ROWID;
INSERT INTO "presence" VALUES(1,1,0,2);
CREATE TABLE records (
        device TEXT NOT NULL, stream INTEGER NOT NULL, highest INTEGER NOT NULL,
        last_slot INTEGER NOT NULL, floor INTEGER NOT NULL, gaps BLOB NOT NULL,
        digests BLOB NOT NULL, first_slot INTEGER, counted INTEGER NOT NULL,
        rejected INTEGER NOT NULL, duplicates INTEGER NOT NULL, conflicts INTEGER NOT NULL,
        created INTEGER NOT NULL, expired INTEGER NOT NULL, first INTEGER NOT NULL,
        next INTEGER NOT NULL, before INTEGER NOT NULL, PRIMARY KEY (device, stream)
    ) WITHOUT ROWID;
INSERT INTO "records" VALUES('home',1,9,1900000,2,X'030000000400000000000000FFFFFFFF0600000006000000F9F91C00ECFB1C00',X'080000003132333435363738090000006162636465666768',1898000,50,4,3,2,60,1,2,11,5);
CREATE TABLE refused (
        reason TEXT NOT NULL, stream INTEGER NOT NULL, messages INTEGER NOT NULL,
        reports INTEGER NOT NULL, PRIMARY KEY (reason, stream)
    ) WITHOUT ROWID;
CREATE TABLE released_chunks (
        device TEXT NOT NULL, stream INTEGER NOT NULL, series INTEGER NOT NULL,
        chunk INTEGER NOT NULL, theta INTEGER NOT NULL, design INTEGER NOT NULL,
        PRIMARY KEY (device, stream, series, chunk)
    ) WITHOUT ROWID;
CREATE TABLE released_designs (
        id INTEGER PRIMARY KEY, design BLOB NOT NULL UNIQUE
    );
CREATE TABLE released_values (
        device TEXT NOT NULL, stream INTEGER NOT NULL, slot INTEGER NOT NULL,
        series INTEGER NOT NULL, position INTEGER NOT NULL, value INTEGER NOT NULL,
        PRIMARY KEY (device, stream, slot)
    ) WITHOUT ROWID;
CREATE TABLE rolled (
        stream INTEGER NOT NULL, what INTEGER NOT NULL, until INTEGER NOT NULL,
        PRIMARY KEY (stream, what)
    ) WITHOUT ROWID;
CREATE TABLE sums (
        stream INTEGER NOT NULL, bucket INTEGER NOT NULL, epoch INTEGER NOT NULL,
        grp INTEGER NOT NULL, sums BLOB NOT NULL, PRIMARY KEY (stream, bucket, epoch, grp)
    ) WITHOUT ROWID;
CREATE TABLE watched (
        device TEXT NOT NULL, stream INTEGER NOT NULL, law TEXT NOT NULL, kept BLOB NOT NULL,
        PRIMARY KEY (device, stream, law)
    ) WITHOUT ROWID;
COMMIT;
