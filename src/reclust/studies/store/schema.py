"""Layout of a store in SQLite (schema.sql), and packing of arrays into blobs.

Rows refer to each other by content keys, so that stores merge by copying rows. What a group of runs
shares (curves, labels, time) is stored once per group, with the runs on the leading axis.
"""

import json
import math
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib.resources import files
from inspect import isfunction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ...data.errors import DataError

T = TypeVar("T")

APPLICATION = 0x7265636C  # "recl", tells a store from other SQLite files
VERSION = 1

_ADVICE = {  # by a part of SQLite's message
    "disk is full": "free some space and run the command again, finished runs are kept",
    "disk I/O error": "free some space, or check the disk, and run the command again",
    "locked": "wait for the process that uses it and run the command again",
    "unable to open": "copy it, with its -wal file if there is one, to a writable folder",
    "readonly": "it or its folder is read-only, use a copy",
    "": "it is damaged or not a store of studies, use a copy or another file",
}
GROUP_TABLES = ("runs", "groups", "curves", "arrays")  # replaced together


def check(connection: sqlite3.Connection, path: Path, *, create: bool = False) -> None:
    """Raise if this is not a store that can be read; create the tables in an empty file."""
    if create:
        _create(connection)
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION and version > VERSION:
        raise DataError(f"{path} was written by a newer reclust: upgrade reclust to read it.")
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL")
    if application != APPLICATION or {sql for (sql,) in found} != set(_statements()):
        raise DataError(f"{path} is not a store of studies, or other tables, views or triggers "
                        "than those of reclust were made in it: use a copy or another file.")
    columns = connection.execute(
        "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c "
        "WHERE t.type = 'table' AND c.type = 'TEXT'").fetchall()
    for table, column in columns:
        if connection.execute(f"SELECT 1 FROM {table} WHERE typeof({column}) = 'blob'").fetchone():
            raise DataError(f"{path} is damaged ({table}.{column} is no text): use a copy.")


def explained(cls: type[T]) -> type[T]:
    """Wrap the public methods of a store with `explain_errors`."""

    def explain(method: Callable[..., Any]) -> Callable[..., Any]:
        return wraps(method)(lambda self, *args, **options: explain_errors(self.path)(method)(
            self, *args, **options))

    for name, method in list(vars(cls).items()):
        if isfunction(method) and name[0] != "_":
            setattr(cls, name, explain(method))
    return cls


@contextmanager
def explain_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what is raised while a store is used into one sentence that says what to do."""
    try:
        yield
    except (OSError, MemoryError, ImportError, DataError):
        raise
    except Exception as error:  # a damaged store may raise anything
        if str(path) in str(error):
            raise
        advice = next(advice for part, advice in _ADVICE.items() if part in str(error))
        kind = OSError if isinstance(error, sqlite3.OperationalError) else DataError
        raise kind(f"The store {path} cannot be used: {advice} ({str(error):.300}).") from error


def _create(connection: sqlite3.Connection) -> None:
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # no other process did it
        for statement in _statements():
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _statements() -> list[str]:
    tables = (files(__package__) / "schema.sql").read_text(encoding="utf-8")
    return [statement.strip() for statement in tables.split(";") if statement.strip()]


def pack(array: np.ndarray) -> bytes:
    """Compress an array, bytes of equal significance next to each other."""
    array = np.ascontiguousarray(array)
    return zlib.compress(array.view(np.uint8).reshape(-1, array.itemsize).T.tobytes(), 6)


def unpack(content: bytes, dtype: str | np.dtype[Any], shape: Sequence[int]) -> np.ndarray:
    kind = np.dtype(dtype)
    size = kind.itemsize * math.prod(shape)
    inflated = zlib.decompressobj().decompress(content, size + 1)  # no more than the shape needs
    rows = np.frombuffer(inflated, np.uint8).reshape(kind.itemsize, -1)
    return np.ascontiguousarray(rows.T).view(kind).reshape(shape)


def pack_curve(epochs: np.ndarray, values: np.ndarray) -> tuple[bytes, str, bytes]:
    """Pack epochs (m,) and values (m, r, ...) into epochs, shape and points, run by run."""
    points = np.moveaxis(values, 0, 1)
    return pack(epochs.astype("<i4")), json.dumps(points.shape), pack(points.astype("<f4"))


def unpack_curve(epochs: bytes, shape: str, points: bytes) -> tuple[np.ndarray, np.ndarray]:
    values = np.moveaxis(unpack(points, "<f4", json.loads(shape)), 1, 0)
    return unpack(epochs, "<i4", (len(values),)), values


def pack_array(array: np.ndarray) -> tuple[str, str, bytes]:
    """Pack into dtype, shape and content, integers in the smallest type that holds them."""
    if array.dtype.kind in "iu" and array.size:
        lowest, highest = np.min_scalar_type(array.min()), np.min_scalar_type(array.max())
        array = array.astype(np.result_type(lowest, highest))
    return array.dtype.str, json.dumps(array.shape), pack(array)


def read_only_uri(path: str | os.PathLike[str]) -> str:
    """Return the address for SQLite, which cannot lock files in a read-only folder."""
    path = Path(path).absolute()
    log = path.with_name(path.name + "-wal")
    frozen = not os.access(path.parent, os.W_OK) and not log.exists()
    return f"{path.as_uri()}?{'immutable=1' if frozen else 'mode=ro'}"


def marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def insert(db: sqlite3.Connection, table: str, rows: Sequence[tuple], how: str = "") -> None:
    if rows:
        db.executemany(f"INSERT {how} INTO {table} VALUES ({marks(rows[0])})", rows)
