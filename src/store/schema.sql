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

-- One row a run of the gate, good or bad; rowid is the order of arrival.  Written by verdict.c.
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

-- version 2

-- Text by content: sources, messages, replies.  A BLOB, because a reply is whatever bytes came.  Written by rows.c.
CREATE TABLE blob (
    hash TEXT PRIMARY KEY CHECK (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*'),
    text BLOB NOT NULL
) STRICT;

-- One row a run: the same command is the same id.  Written by rows.c, as is the next one.
CREATE TABLE run (
    id      TEXT PRIMARY KEY CHECK (length(id) = 64 AND id NOT GLOB '*[^0-9a-f]*'),
    command TEXT NOT NULL,
    json    TEXT NOT NULL,
    created TEXT NOT NULL
) STRICT;

-- What was asked of a model or of the gate, and what came back; rowid is the order in which answers came.
CREATE TABLE effect (
    key     TEXT PRIMARY KEY CHECK (length(key) = 64 AND key NOT GLOB '*[^0-9a-f]*'),
    run     TEXT NOT NULL,
    track   TEXT NOT NULL,
    kind    TEXT NOT NULL CHECK (kind IN ('ask', 'judge')),
    purpose TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    request TEXT NOT NULL,
    answer  TEXT NOT NULL,
    created TEXT NOT NULL
) STRICT;
CREATE INDEX effect_by_run ON effect (run, track);

-- The ledger: money is reserved here before a request leaves.  `effect` has no row in its table until the answer came.
-- Written by charge.c.
CREATE TABLE charge (
    effect             TEXT NOT NULL CHECK (length(effect) = 64 AND effect NOT GLOB '*[^0-9a-f]*'),
    attempt            INTEGER NOT NULL,
    run                TEXT NOT NULL,
    track              TEXT NOT NULL,
    workload           TEXT NOT NULL,
    policy             TEXT NOT NULL,
    phase              TEXT NOT NULL,
    model              TEXT NOT NULL,
    priced_as          TEXT NOT NULL,
    price_date         TEXT NOT NULL,
    state              TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'lost', 'released')),
    reserved_microusd  INTEGER NOT NULL CHECK (reserved_microusd >= 0),
    settled_microusd   INTEGER NOT NULL CHECK (settled_microusd >= 0),
    input              INTEGER NOT NULL CHECK (input >= 0),
    cache_read         INTEGER NOT NULL CHECK (cache_read >= 0),
    cache_write_5m     INTEGER NOT NULL CHECK (cache_write_5m >= 0),
    cache_write_1h     INTEGER NOT NULL CHECK (cache_write_1h >= 0),
    output             INTEGER NOT NULL CHECK (output >= 0),
    estimated          INTEGER NOT NULL,
    created            TEXT NOT NULL,
    PRIMARY KEY (effect, attempt)
) STRICT;
CREATE INDEX charge_by_run ON charge (run, track);

-- The gated attempts of a track, in its own order.  Written by rows.c.
CREATE TABLE step (
    run   TEXT NOT NULL,
    track TEXT NOT NULL,
    n     INTEGER NOT NULL,
    json  TEXT NOT NULL,
    PRIMARY KEY (run, track, n)
) STRICT;

-- Documents whose modules own what they say: lineages.  Written by rows.c.
CREATE TABLE record (
    kind    TEXT NOT NULL,
    id      TEXT NOT NULL,
    name    TEXT NOT NULL,
    task    TEXT NOT NULL,
    json    TEXT NOT NULL,
    created TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT;
CREATE INDEX record_by_name ON record (kind, name);

-- version 3

-- The text of a verdict as a zstd frame over the dictionary src/store/verdict.zdict; `json` is '' then.
ALTER TABLE verdict ADD COLUMN packed BLOB;

-- Who works on what, and until when unless renewed.  A row goes when its work ends.  Written by lease.c.
CREATE TABLE lease (
    name        TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    deadline_ms INTEGER NOT NULL CHECK (deadline_ms >= 0)
) STRICT;
