"""Records: several stores read as one, and stores made small enough to be committed."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ...training.history import AFTER_RESET
from ...utils.files import check_writable
from ...utils.values import check_int, value
from . import schema
from .reader import StoreReader
from .store import Store

OF_ALL_SAMPLES = ("labels", "test_labels", "centers")
"""Arrays that grow with the data, and centres that mean nothing without them: left out of a compact store."""
OF_SAMPLES = ("nearest", "farthest")
"""Curves that hold row numbers of samples."""
FEW = 64
"""Numbers an epoch up to which a curve is small enough to be kept around every intervention."""
PAGE = 1024
"""Bytes of a page of a compact store."""
AROUND = (-1, 0, 1, 2, 4)
"""Epochs around one that begins with an intervention whose ends are kept, as far as they were looked at: what jumps there
comes back within a few."""
BITS = 12
"""Of a curve's mantissas that are kept: a part in 8,000, far below what seeds differ by."""
BITS_OF_MANY = 7
"""Of curves with more than `FEW` numbers an epoch, which are only drawn: a part in 250, less than a dot is wide."""

Naming = Callable[[StoreReader, str], str | None]
"""A store and a study of it -> the name that the study goes by among those of other stores; None leaves it out."""


@value
class Kept:
    """What a compact store keeps of curves. Scores, settings, time and provenance always stay as they are.

    every: epochs between two points; those around interventions stay as well, and of curves with many numbers an epoch only
        those. curves: their names, with those right after interventions; None for all.
    """

    every: int = 10
    curves: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_int("every", self.every, 1)


def gather(stores: Iterable[str | os.PathLike[str]], path: str | os.PathLike[str], *,
           study: Naming = lambda reader, name: name) -> None:
    """A new store at `path` with what several stores hold, whatever plans they ran by.

    study: how studies are called in the new store, so that parts of one become one. A run is in a study's plan once for each
    seed of a cell: one that finished, of the group in which fewest did not, the first in the order of the stores. Of variants
    that are one run under two names the first stays.
    """
    plans: dict[str, dict[tuple, list[tuple]]] = {}
    specs: dict[str, str] = {}
    with Store(path) as made:
        for one in stores:
            made.merge(one)
            with StoreReader(one) as reader:
                for name, spec in reader._db.execute("SELECT name, spec FROM studies ORDER BY name").fetchall():
                    if (own := study(reader, name)) is not None:
                        specs.setdefault(own, spec)
                        for run, group, *cell in reader._db.execute(
                                "SELECT run, group_key, dataset, algorithm, variant, pretrained, seed, factors FROM plan "
                                "WHERE study = ? ORDER BY position", (name,)):
                            plans.setdefault(own, {}).setdefault(tuple(cell), []).append((run, group))
        finished = {run for (run,) in made._db.execute("SELECT run FROM runs WHERE state = 'finished'")}
        unfinished = Counter(group for cells in plans.values() for runs in cells.values()
                             for run, group in runs if run not in finished)
        with made._transaction() as db:
            db.execute("DELETE FROM plan")
            db.execute("DELETE FROM studies")
            db.executemany("INSERT INTO studies VALUES (?, ?)", specs.items())
            db.executemany("INSERT OR IGNORE INTO plan VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [
                (name, position, *min(runs, key=lambda own: (own[0] not in finished, unfinished[own[1]])), *cell)
                for name, cells in plans.items() for position, (cell, runs) in enumerate(cells.items())])


def compact(stores: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str], kept: Kept = Kept()) -> None:
    """What several stores hold as one small file, the same bytes for the same stores: without labels and centres, curves with
    fewer points and digits, and only what plans name."""
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{path} exists already: give another name, or delete it first.")
    check_writable(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        whole = Path(folder) / path.name
        _write_compact(stores, whole, kept)
        os.replace(whole, path)


def _write_compact(stores: Sequence[str | os.PathLike[str]], path: Path, kept: Kept) -> None:
    with gathered(stores) as reader, Store(path) as made, made._transaction() as db:
        known = {name for (name,) in reader._db.execute("SELECT DISTINCT name FROM curves")}
        for name in kept.curves or ():
            if known and name not in known:
                raise ValueError(f"No run has a curve {name!r}; there are {', '.join(sorted(known))}.")
        planned = "SELECT group_key FROM plan"
        for table, some, order in (
                ("studies", "1", "name"), ("plan", "1", "study, position"), ("runs", f"group_key IN ({planned})", "run"),
                ("groups", f"group_key IN ({planned})", "group_key"),
                ("measures", f"run IN (SELECT run FROM runs WHERE group_key IN ({planned}))", "run, name"),
                ("contents", f"hash IN (SELECT settings FROM runs WHERE group_key IN ({planned}) UNION "
                             f"SELECT provenance FROM groups WHERE group_key IN ({planned}))", "hash"),
                ("arrays", f"group_key IN ({planned}) AND name NOT IN ({', '.join('?' * len(OF_ALL_SAMPLES))})",
                 "group_key, name")):
            given = OF_ALL_SAMPLES if table == "arrays" else ()
            rows = reader._db.execute(f"SELECT * FROM {table} WHERE {some} ORDER BY {order}", given).fetchall()
            if rows:
                db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        for (group,) in reader._db.execute(f"{planned} GROUP BY group_key ORDER BY group_key").fetchall():
            db.executemany("INSERT INTO curves VALUES (?, ?, ?, ?, ?, ?)", _smaller(reader, group, kept))
    with Store(path) as made:  # one file without a log beside it, in pages that rows of a kilobyte fill
        for statement in ("PRAGMA journal_mode = DELETE", f"PRAGMA page_size = {PAGE}", "VACUUM"):
            made._db.execute(statement)


@contextmanager
def gathered(stores: Iterable[str | os.PathLike[str]], *,
             study: Naming = lambda reader, name: name) -> Iterator[StoreReader]:
    """Several stores as one, to be read; see `gather`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gathered.sqlite"
        gather(stores, path, study=study)
        with StoreReader(path) as reader:
            yield reader


def _smaller(reader: StoreReader, group: str, kept: Kept) -> Iterator[tuple]:
    """The rows of a group's curves."""
    found = reader._db.execute(
        "SELECT phase, name, epochs, shape, points FROM curves WHERE group_key = ? ORDER BY phase, name", (group,)).fetchall()
    curves = {(phase, name): schema.unpack_curve(*content) for phase, name, *content in found}
    for (phase, name), (epochs, values) in curves.items():
        plain = name.removesuffix(AFTER_RESET)
        if plain in OF_SAMPLES or not (kept.curves is None or plain in kept.curves or name == "fired"):
            continue
        fired = curves[phase, "fired"][0].tolist() if (phase, "fired") in curves else []
        width = values[0, 0].size
        rows = np.isin(epochs, list(_epochs(epochs, fired, width, kept.every)))
        bits = BITS if width <= FEW else BITS_OF_MANY
        yield group, phase, name, *schema.pack_curve(epochs[rows], _rounded(values[rows], bits))


def _epochs(epochs: np.ndarray, fired: Sequence[int], width: int, every: int) -> set[int]:
    """Which epochs of a curve to keep. width: numbers an epoch."""
    first_and_last = set(epochs[[0, -1]].tolist())
    if width > FEW:  # embeddings: around the first reset and one in the middle, as figures show them
        fired, later = [fired[i] for i in sorted({0, len(fired) // 2})] if fired else [], [*fired[1:], int(epochs[-1]) + 1]
        return first_and_last | {at for one in fired for at in (one - 1, one, min(e for e in later if e > one) - 1)}
    around = {one + step for one in fired for step in AROUND}
    return first_and_last | around | ({e for e in epochs.tolist() if (e + 1) % every == 0} if width == 1 else set())


def _rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """In float32 with so many bits of the mantissa, rounded half up: what is left compresses well."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    spare = 23 - bits
    fewer = (values.view(np.uint32) + np.uint32(1 << (spare - 1))) & np.uint32(0xFFFFFFFF << spare & 0xFFFFFFFF)
    return np.where(np.isfinite(values), fewer.view(np.float32), values)
