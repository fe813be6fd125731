CREATE TABLE studies (name TEXT PRIMARY KEY, spec TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE plan (
    study TEXT NOT NULL, position INTEGER NOT NULL, run TEXT NOT NULL, group_key TEXT NOT NULL,
    dataset TEXT NOT NULL, algorithm TEXT NOT NULL, variant TEXT NOT NULL, pretrained INTEGER NOT NULL,
    seed INTEGER NOT NULL, factors TEXT NOT NULL,
    PRIMARY KEY (study, position), UNIQUE (study, run)
) WITHOUT ROWID;
CREATE TABLE runs (
    run TEXT PRIMARY KEY, group_key TEXT NOT NULL, position INTEGER NOT NULL, state TEXT NOT NULL,
    acc REAL, nmi REAL, ari REAL, seconds REAL, error TEXT, settings TEXT, finished_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_of_group ON runs (group_key);
CREATE TABLE groups (group_key TEXT PRIMARY KEY, size INTEGER NOT NULL, seconds TEXT NOT NULL, provenance TEXT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE contents (hash TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE measures (run TEXT NOT NULL, name TEXT NOT NULL, value REAL, PRIMARY KEY (run, name)) WITHOUT ROWID;
CREATE TABLE curves (
    group_key TEXT NOT NULL, phase TEXT NOT NULL, name TEXT NOT NULL, epochs BLOB NOT NULL, shape TEXT NOT NULL,
    points BLOB NOT NULL, PRIMARY KEY (group_key, phase, name)
);
CREATE TABLE arrays (
    group_key TEXT NOT NULL, name TEXT NOT NULL, dtype TEXT NOT NULL, shape TEXT NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (group_key, name)
);
