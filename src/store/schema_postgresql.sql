-- schema_postgresql.sql - schema.sql for the PostgreSQL member; what each table is for is said there.
--
-- The sections are those of schema.sql: at version N both members hold the same rows.  All of it lies in the schema
-- `klineage` of the database.  `rowid` is the order of arrival, and texts of keys are compared as bytes.

-- version 1

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO meta VALUES ('application', 'klineage'), ('schema', '0'),
    ('created', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'));

CREATE TABLE verdict (
    rowid    BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
    key      TEXT COLLATE "C" PRIMARY KEY CHECK (key ~ '^[0-9a-f]{64}$'),
    task     TEXT NOT NULL,
    kernel   TEXT NOT NULL,
    platform TEXT NOT NULL,
    outcome  TEXT NOT NULL,
    json     TEXT NOT NULL,
    created  TEXT NOT NULL
);
CREATE INDEX verdict_by_task ON verdict (task);

-- version 2

CREATE TABLE blob (
    rowid BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
    hash  TEXT COLLATE "C" PRIMARY KEY CHECK (hash ~ '^[0-9a-f]{64}$'),
    text  BYTEA NOT NULL
);

CREATE TABLE run (
    rowid   BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
    id      TEXT COLLATE "C" PRIMARY KEY CHECK (id ~ '^[0-9a-f]{64}$'),
    command TEXT NOT NULL,
    json    TEXT NOT NULL,
    created TEXT NOT NULL
);

CREATE TABLE effect (
    rowid   BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
    key     TEXT COLLATE "C" PRIMARY KEY CHECK (key ~ '^[0-9a-f]{64}$'),
    run     TEXT NOT NULL,
    track   TEXT NOT NULL,
    kind    TEXT NOT NULL CHECK (kind IN ('ask', 'judge')),
    purpose TEXT NOT NULL,
    ordinal BIGINT NOT NULL,
    request TEXT NOT NULL,
    answer  TEXT NOT NULL,
    created TEXT NOT NULL
);
CREATE INDEX effect_by_run ON effect (run, track);

CREATE TABLE charge (
    rowid              BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
    effect             TEXT COLLATE "C" NOT NULL CHECK (effect ~ '^[0-9a-f]{64}$'),
    attempt            BIGINT NOT NULL,
    run                TEXT NOT NULL,
    track              TEXT NOT NULL,
    workload           TEXT NOT NULL,
    policy             TEXT NOT NULL,
    phase              TEXT NOT NULL,
    model              TEXT NOT NULL,
    priced_as          TEXT NOT NULL,
    price_date         TEXT NOT NULL,
    state              TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'lost', 'released')),
    reserved_microusd  BIGINT NOT NULL CHECK (reserved_microusd >= 0),
    settled_microusd   BIGINT NOT NULL CHECK (settled_microusd >= 0),
    input              BIGINT NOT NULL CHECK (input >= 0),
    cache_read         BIGINT NOT NULL CHECK (cache_read >= 0),
    cache_write_5m     BIGINT NOT NULL CHECK (cache_write_5m >= 0),
    cache_write_1h     BIGINT NOT NULL CHECK (cache_write_1h >= 0),
    output             BIGINT NOT NULL CHECK (output >= 0),
    estimated          BOOLEAN NOT NULL,
    created            TEXT NOT NULL,
    PRIMARY KEY (effect, attempt)
);
CREATE INDEX charge_by_run ON charge (run, track);

CREATE TABLE step (
    rowid BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
    run   TEXT COLLATE "C" NOT NULL,
    track TEXT COLLATE "C" NOT NULL,
    n     BIGINT NOT NULL,
    json  TEXT NOT NULL,
    PRIMARY KEY (run, track, n)
);

CREATE TABLE record (
    rowid   BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
    kind    TEXT COLLATE "C" NOT NULL,
    id      TEXT COLLATE "C" NOT NULL,
    name    TEXT NOT NULL,
    task    TEXT NOT NULL,
    json    TEXT NOT NULL,
    created TEXT NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX record_by_name ON record (kind, name);

-- version 3

ALTER TABLE verdict ADD COLUMN packed BYTEA;

CREATE TABLE lease (
    rowid       BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
    name        TEXT COLLATE "C" PRIMARY KEY,
    owner       TEXT NOT NULL,
    deadline_ms BIGINT NOT NULL CHECK (deadline_ms >= 0)
);
