PRAGMA application_id = 1279545409;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE counts (
        stream INTEGER NOT NULL, epoch INTEGER NOT NULL, bucket INTEGER NOT NULL,
        pairs BLOB NOT NULL, PRIMARY KEY (stream, epoch, bucket)
    ) WITHOUT ROWID;
INSERT INTO "counts" VALUES(1,1,1,X'07000200000000000000');
INSERT INTO "counts" VALUES(1,1,2,X'02000100000000000000');
INSERT INTO "counts" VALUES(1,2,1,X'0700FFFF01000000000000000100000000000000');
CREATE TABLE devices (
        device TEXT PRIMARY KEY, state TEXT NOT NULL, software TEXT NOT NULL,
        seen_s INTEGER NOT NULL
    ) WITHOUT ROWID;
INSERT INTO "devices" VALUES('home','online','0.1',1700000000);
INSERT INTO "devices" VALUES('other','unknown','',1700000000);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "facts" VALUES('committed_s','1700000000');
INSERT INTO "facts" VALUES('fleet','demo');
INSERT INTO "facts" VALUES('stream 1','power in W, 4 slots of 900 s');
CREATE TABLE looks (
        stream INTEGER NOT NULL, at_s INTEGER NOT NULL, payload BLOB NOT NULL,
        PRIMARY KEY (stream, at_s)
    ) WITHOUT ROWID;
INSERT INTO "looks" VALUES(1,5,X'6C6F6F6B');
CREATE TABLE marks (
        device TEXT NOT NULL, stream INTEGER NOT NULL, first_s INTEGER NOT NULL,
        last_s INTEGER NOT NULL, times INTEGER NOT NULL, name TEXT NOT NULL,
        seen INTEGER NOT NULL, reports INTEGER NOT NULL, bound REAL NOT NULL,
        chance REAL NOT NULL, PRIMARY KEY (device, stream)
    ) WITHOUT ROWID;
INSERT INTO "marks" VALUES('home',1,1700000000,1700000000,1,'code 7',20,40,0.25,1.0e-09);
CREATE TABLE plans (
        stream INTEGER NOT NULL, epoch INTEGER NOT NULL, issued_s INTEGER NOT NULL,
        payload BLOB NOT NULL, PRIMARY KEY (stream, epoch)
    ) WITHOUT ROWID;
INSERT INTO "plans" VALUES(1,1,1700000000,X'706C616E');
CREATE TABLE presence (
        stream INTEGER NOT NULL, bucket INTEGER NOT NULL, slots INTEGER NOT NULL,
        PRIMARY KEY (stream, bucket)
    ) WITHOUT ROWID;
INSERT INTO "presence" VALUES(1,1,3);
INSERT INTO "presence" VALUES(1,2,1);
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
INSERT INTO "refused" VALUES('late',1,1,96);
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
CREATE TABLE watched (
        device TEXT NOT NULL, stream INTEGER NOT NULL, law TEXT NOT NULL, kept BLOB NOT NULL,
        PRIMARY KEY (device, stream, law)
    ) WITHOUT ROWID;
INSERT INTO "watched" VALUES('home',1,'law',X'6B657074');
COMMIT;
