"""How a store is laid out in SQLite, and how arrays become blobs.

Rows refer to each other by content keys and never by row numbers, so that two stores merge by copying rows. What a group
of runs shares (curves, labels, time) is written once for the group, with the runs on the leading axis.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from typing import Any

import numpy as np

APPLICATION = 0x7265636C  # "recl": tells a store from other SQLite files
VERSION = 1

TABLES = """
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
"""

OF_GROUP = ("runs", "groups", "curves", "arrays")
"""Tables whose rows belong to a group and are replaced with it; measures follow their runs."""


def create(connection: sqlite3.Connection) -> None:
    """The tables of an empty store, all or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # another process may have been faster
            for statement in filter(str.strip, TABLES.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def check(connection: sqlite3.Connection, path: Any) -> None:
    """Raise where this is no store, or one that this version cannot read."""
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} is no store of studies: {error}.") from error
    if application != APPLICATION:
        raise ValueError(f"{path} is no store of studies: it is another kind of file, or nothing was written to it yet.")
    if version > VERSION:
        raise ValueError(f"{path} was written by a newer reclust (layout {version}, this one reads {VERSION}): upgrade it.")


def pack(array: np.ndarray) -> bytes:
    """Compressed, bytes of equal significance side by side: numbers of similar size then shrink further."""
    array = np.ascontiguousarray(array)
    return zlib.compress(array.view(np.uint8).reshape(-1, array.itemsize).T.tobytes(), 6)


def unpack(content: bytes, dtype: str | np.dtype[Any]) -> np.ndarray:
    """The inverse of `pack`, flat."""
    kind = np.dtype(dtype)
    rows = np.frombuffer(zlib.decompress(content), np.uint8).reshape(kind.itemsize, -1)
    return np.ascontiguousarray(rows.T).reshape(-1).view(kind)


def pack_curve(epochs: np.ndarray, values: np.ndarray) -> tuple[bytes, str, bytes]:
    """Epochs (m,), the shape of the points, and the points (r, m, ...), one run after the other; values are (m, r, ...)."""
    points = np.moveaxis(values, 0, 1)
    return pack(epochs.astype("<i4")), json.dumps(points.shape), pack(points.astype("<f4"))


def unpack_curve(epochs: bytes, shape: str, points: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Epochs (m,) and values (m, r, ...)."""
    return unpack(epochs, "<i4"), np.moveaxis(unpack(points, "<f4").reshape(json.loads(shape)), 1, 0)


def pack_array(array: np.ndarray) -> tuple[str, str, bytes]:
    """dtype, shape and content; whole numbers in the smallest type that holds them."""
    if array.dtype.kind in "iu" and array.size:
        array = array.astype(np.result_type(np.min_scalar_type(array.min()), np.min_scalar_type(array.max())))
    return array.dtype.str, json.dumps(array.shape), pack(array)


def unpack_array(dtype: str, shape: str, content: bytes) -> np.ndarray:
    return unpack(content, dtype).reshape(json.loads(shape))
