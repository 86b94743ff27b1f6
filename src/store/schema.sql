-- schema.sql - every table, in the order data meets them, with the one file that writes it.
--
-- A line `-- version N` opens a section.  A file at user_version K runs the sections K+1 and up, each in the one
-- transaction that ends with user_version set; so a section that was ever released is never edited, only followed.

-- version 1

-- What this file is.  Written here, read by people.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('created', strftime('%Y-%m-%dT%H:%M:%SZ', 'now'));

-- One row a run of the gate, good or bad; rowid is the order of arrival.  Written by store/verdict.c.
CREATE TABLE verdict (
    key      TEXT PRIMARY KEY CHECK (length(key) = 64 AND key NOT GLOB '*[^0-9a-f]*'),
    task     TEXT NOT NULL,
    kernel   TEXT NOT NULL,
    platform TEXT NOT NULL,
    outcome  TEXT NOT NULL,
    json     TEXT NOT NULL,
    created  TEXT NOT NULL
) STRICT;
CREATE INDEX verdict_by_task ON verdict (task);
