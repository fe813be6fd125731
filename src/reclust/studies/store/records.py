"""Records: several stores read as one, and stores made small enough to be committed."""

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ...data.errors import DataError
from ...training.history import AFTER_RESET
from ...utils.files import check_writable, write_bytes
from ...utils.values import check_int
from . import schema
from .reader import StoreReader
from .schema import insert
from .store import Store

LARGE_ARRAYS = ("labels", "test_labels", "centers")  # left out: they grow with the data
SAMPLE_CURVES = ("nearest", "farthest")  # row numbers of samples, left out as well
SMALL = 64  # curves with more numbers per epoch are kept only around two interventions
PAGE_BYTES = 1024
AROUND = (-1, 0, 1, 2, 4)  # epochs kept around each intervention, where curves jump and recover
BITS, BITS_OF_LARGE = 12, 7  # of a mantissa: a precision of 1/8000, for large curves of 1/250

# Name that a study of a store gets among those of other stores; None leaves it out.
StudyName = Callable[[StoreReader, str], str | None]
Paths = Sequence[str | os.PathLike[str]]


@contextmanager
def gathered(stores: Iterable[str | os.PathLike[str]], *,
             study: StudyName = lambda reader, name: name) -> Iterator[StoreReader]:
    """Read several stores as one; `study` can give parts of a study the same name.

    Of several runs for one seed of a cell, a finished one is planned, from the group with the
    fewest unfinished runs, the first in the order of the stores.
    """
    plans: dict[str, dict[tuple, list[tuple]]] = defaultdict(lambda: defaultdict(list))
    specs: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "gathered.sqlite") as store:
        for path in stores:
            store.merge(path)
            with StoreReader(path) as reader:
                for name, spec in list(reader._db.execute("SELECT * FROM studies ORDER BY name")):
                    if (new := study(reader, name)) is None:
                        continue
                    specs.setdefault(new, spec)
                    for _, _, run, group, *cell in reader._db.execute(
                            "SELECT * FROM plan WHERE study = ? ORDER BY position", (name,)):
                        plans[new][tuple(cell)].append((run, group))
        rows = store._db.execute("SELECT run FROM runs WHERE state = 'finished'")
        finished = {run for (run,) in rows}
        unfinished = Counter(group for cells in plans.values() for runs in cells.values()
                             for run, group in runs if run not in finished)

        def best(runs: Sequence[tuple]) -> tuple:
            return min(runs, key=lambda run: (run[0] not in finished, unfinished[run[1]]))

        with store._transaction() as db:
            db.execute("DELETE FROM plan")
            db.execute("DELETE FROM studies")
            insert(db, "studies", list(specs.items()))
            insert(db, "plan", [
                (name, position, *best(runs), *cell) for name, cells in plans.items()
                for position, (cell, runs) in enumerate(cells.items())], "OR IGNORE")
        yield store


def compact(stores: Paths, path: str | os.PathLike[str], *, every: int = 10,
            curves: Sequence[str] | None = None) -> None:
    """Write stores into one small file, with the same bytes for the same stores.

    It has planned runs, no labels and centers, and curves with fewer digits and points.
    """
    path = Path(path)
    check_int("every", every, least=1)
    if path.exists():
        raise FileExistsError(f"{path} exists already: choose another name, or delete it first.")
    check_writable(path)
    planned = "SELECT group_key FROM plan"
    runs = f"SELECT run FROM runs WHERE group_key IN ({planned})"
    contents = (f"SELECT settings FROM runs WHERE group_key IN ({planned}) UNION "
                f"SELECT provenance FROM groups WHERE group_key IN ({planned})")
    tables = (("studies", "1", "name"), ("plan", "1", "study, position"),
              ("runs", f"group_key IN ({planned})", "run"),
              ("groups", f"group_key IN ({planned})", "group_key"),
              ("measures", f"run IN ({runs})", "run, name"),
              ("contents", f"hash IN ({contents})", "hash"),
              ("arrays", f"group_key IN ({planned}) AND name NOT IN {LARGE_ARRAYS}",
               "group_key, name"))
    names = ", ".join(map(str, stores))
    with tempfile.TemporaryDirectory() as folder, schema.explain_errors(names):
        whole = Path(folder) / path.name
        with gathered(stores) as reader, Store(whole) as store, store._transaction() as db:
            known = {name for (name,) in reader._db.execute("SELECT DISTINCT name FROM curves")}
            missing = sorted({*(curves or known)} - known)
            if missing and known:
                raise DataError(f"The stores have no curves {missing}, only {sorted(known)}.")
            for table, some, order in tables:
                insert(db, table, reader._db.execute(
                    f"SELECT * FROM {table} WHERE {some} ORDER BY {order}").fetchall())
            for (group,) in reader._db.execute(f"{planned} GROUP BY 1 ORDER BY 1").fetchall():
                insert(db, "curves", list(_smaller_curves(reader, group, every, curves)))
        with Store(whole) as store:  # one file without a log
            store._db.executescript(
                f"PRAGMA journal_mode = DELETE; PRAGMA page_size = {PAGE_BYTES}; VACUUM;")
        write_bytes(path, whole.read_bytes())


def _smaller_curves(reader: StoreReader, group: str, every: int,
                    wanted: Sequence[str] | None) -> Iterator[tuple]:
    rows = reader._db.execute("SELECT phase, name, epochs, shape, points FROM curves "
                              "WHERE group_key = ? ORDER BY phase, name", (group,)).fetchall()
    curves = {(phase, name): schema.unpack_curve(*content) for phase, name, *content in rows}
    for (phase, name), (epochs, values) in curves.items():
        plain = name.removesuffix(AFTER_RESET)
        if plain in SAMPLE_CURVES or not (wanted is None or plain in wanted or name == "fired"):
            continue
        fired = curves[phase, "fired"][0].tolist() if (phase, "fired") in curves else []
        width = values[0, 0].size
        some = np.isin(epochs, list(_kept_epochs(epochs, fired, width, every)))
        bits = BITS if width <= SMALL else BITS_OF_LARGE
        yield group, phase, name, *schema.pack_curve(epochs[some], _rounded(values[some], bits))


def _kept_epochs(epochs: np.ndarray, fired: Sequence[int], width: int, every: int) -> set[int]:
    chosen = set(epochs[[0, -1]].tolist())
    if width > SMALL:  # embeddings, as figures show them: around the first and a middle reset
        ends = [*fired[1:], int(epochs[-1]) + 1]
        for reset in {fired[0], fired[len(fired) // 2]} if fired else ():
            chosen |= {reset - 1, reset, min(end for end in ends if end > reset) - 1}
        return chosen
    chosen |= {reset + step for reset in fired for step in AROUND}
    return chosen | ({e for e in epochs.tolist() if (e + 1) % every == 0} if width == 1 else set())


def _rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """Round half up to this many bits of the mantissa, so that values compress well."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    unit = 1 << (23 - bits)
    fewer = (values.view(np.uint32) + np.uint32(unit // 2)) & np.uint32(2**32 - unit)
    return np.where(np.isfinite(values), fewer.view(np.float32), values)
