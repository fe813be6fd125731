"""Valid files of every kind, one thing changed anywhere in their structure, and what reading them may do.

`python tests/fuzzing.py FIRST COUNT` runs cases in this process and prints a line of JSON for each law that is broken: reading ends
with a result, a ValueError or an OSError, within 10 seconds, and takes at most 64 MB and 20 times the size of the file.
"""

import copy
import functools
import gzip
import io
import json
import logging
import os
import random
import resource
import shutil
import signal
import sqlite3
import struct
import sys
import tempfile
import time
import warnings
import zlib
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pyarrow as arrow
import pyarrow.parquet
import torch
from PIL import Image
from scipy import sparse
from support import blobs, forget_peak, resident, small_settings

import reclust
from reclust import IDEC, Autoencoder, Checkpoint, ConvAutoencoder, Curve, Reclust, Result, train
from reclust.data import read
from reclust.data.accept import accept
from reclust.report.card import card
from reclust.studies import Outcome, PlannedRun, Store, StoreReader, export
from reclust.studies.tables import render, tables
from reclust.training.checkpoint import TrainingState
from reclust.utils import tensor_file
from reclust.utils.values import import_all

SECONDS, MEGABYTES, TIMES = 10, 64, 20
N = 30
LONG, MANY = "x" * 100_000, ["x" * 100_000] + ["a"] * 3000
BOMB = zlib.compress(bytes(10**8))
LEAVES = (None, True, 0, -1, 1, 3, 2**31, 2**63, 10**40, 1e308, -0.5, float("nan"), float("inf"), "", "x", "../../x", "a\rb\x1b[31m\0", "=1+1", LONG, MANY,
          "cuda:99", "meta", [], {}, [[]], [1] * 40_000, [10**6, 10**6], {"kind": "Settings", "fields": {}}, {"kind": [], "fields": 3}, {"mapping": 3},
          {"kind": "os.system", "fields": {"command": "false"}}, {"kind": "Autoencoder", "fields": {"hidden": [10**6, 10**6]}},
          {"kind": "ConvAutoencoder", "fields": {"residuals": 10**9}}, {"kind": "NotStored", "fields": {"what": "x"}},
          functools.reduce(lambda inner, _: [inner], range(200), 1))


# Valid files


def make_tensor_files(folder):
    X, _ = blobs(n=N)
    small = {"pretrain_epochs": 1, "epochs": 2, "batch_size": 15, "device": "cpu", "random_state": 0, "intervention": None}
    IDEC(4, representation=Autoencoder((6,)), n_init=2, **small).fit(read(X, ids=[f"sample {i}" for i in range(N)])).save(folder / "table.model")
    IDEC(4, representation=ConvAutoencoder((2, 3), residuals=1), **small).fit(X.reshape(N, 3, 4)).save(folder / "images.model")
    Reclust(3, effort="quick", random_state=0, device="cpu").fit(X).save(folder / "members.model")
    train(X, small_settings(representation=Autoencoder((6,))), seeds=(3,), checkpoint=Checkpoint(folder / "x.checkpoint", every=1)).save(folder / "x.result")


def make_store(path):
    rng = np.random.default_rng(0)
    with Store(path) as store:
        for study in ("s", "t"):
            runs = [PlannedRun(f"{study}{variant}{i}", f"{study}{variant}", "digits", "idec", variant, True, i, {"keep": 0.5})
                    for variant in ("none", "brb") for i in range(3)]
            store.plan(study, small_settings(), runs)
            for variant in ("none", "brb"):
                curve = Curve(np.array([-1, 0, 4]), rng.random((3, 3)))
                store.add(Outcome(
                    f"{study}{variant}", [f"{study}{variant}{i}" for i in range(3)], [small_settings()] * 3, {name: rng.random(3) for name in ("acc", "nmi", "ari", "silhouette")},
                    {"clustering": {"accuracy": curve, "loss": curve}}, {"labels": rng.integers(4, size=(3, N)), "centers": rng.random((3, 4, 2))},
                    {"clustering.training": 6.0}, {"device": "abacus"}, {2: "Error: no"} if study == "t" else {}))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


def make_data(folder):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(N, 4)).round(3)
    rows = [["name", "a", "b", "c", "d", "kind"], *([f"row {i}", *row, "xyz"[i % 3]] for i, row in enumerate(table.tolist()))]
    (folder / "x.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    np.savez(folder / "x.npz", data=table, labels=np.arange(N) % 3)
    sparse.save_npz(folder / "sparse.npz", sparse.csr_array(np.maximum(table, 0)))
    np.save(folder / "x.npy", table)
    with h5py.File(folder / "x.h5", "w") as file:
        file["data"], file["y"], file["ids"] = table, np.arange(N) % 3, [f"row {i}" for i in range(N)]
    pyarrow.parquet.write_table(arrow.table({name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}), folder / "x.parquet")
    (folder / "x.images" / "one").mkdir(parents=True)
    for i in range(4):
        Image.fromarray(rng.integers(0, 255, (6, 5) if i % 2 else (6, 5, 3)).astype(np.uint8)).save(folder / "x.images" / "one" / f"{i}.png")


KINDS = ("table.model", "images.model", "members.model", "x.result", "x.checkpoint", "x.store", "x.csv", "x.parquet", "x.h5", "x.npz", "sparse.npz", "x.npy", "x.images")


@functools.cache
def originals():
    folder = Path(tempfile.mkdtemp())
    make_tensor_files(folder)
    make_store(folder / "x.store")
    make_data(folder)
    return folder


# Changes


def places(thing, so_far=()):
    yield so_far
    for name, item in thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ():
        yield from places(item, (*so_far, name))


def change_json(data, rng):
    """Replace, remove, repeat or copy something at a random place."""
    found = [place for place in places(data) if place]
    if not found:
        return copy.deepcopy(rng.choice(LEAVES))
    *way, last = rng.choice(found)
    inner = functools.reduce(lambda thing, name: thing[name], way, data)
    how = rng.randrange(10)
    if how < 7:
        inner[last] = copy.deepcopy(rng.choice(LEAVES))
    elif how == 7:
        inner.pop(last)
    elif how == 8:
        other = functools.reduce(lambda thing, name: thing[name], rng.choice(found), data)
        inner[last] = copy.deepcopy(other)
    elif isinstance(inner[last], list):
        inner[last] = inner[last] * rng.choice((2, 100, 10_000))
    return data


def change_tensor(tensors, rng):
    name = rng.choice(sorted(tensors))
    tensor = tensors.pop(name)
    dtypes = (torch.int8, torch.bool, torch.float16, torch.float64, torch.int64, torch.bfloat16, torch.uint8)
    changes = (
        lambda: {name + "x": tensor}, lambda: {}, lambda: {name: tensor.flatten()[: rng.randrange(1 + tensor.numel())]}, lambda: {name: tensor.unsqueeze(0)},
        lambda: {name: tensor[:0]} if tensor.ndim else {}, lambda: {name: tensor.to(rng.choice(dtypes))}, lambda: {name: torch.full_like(tensor, rng.choice((-1, 0, 100)))},
        lambda: {name: torch.full_like(tensor, float("nan")) if tensor.is_floating_point() else tensor * 2**40}, lambda: {name: torch.zeros(10**5, dtype=tensor.dtype)},
        lambda: {name: tensors[rng.choice(sorted(tensors))].clone()} if tensors else {}, lambda: {name: tensor.mT.contiguous()} if tensor.ndim > 1 else {})
    tensors |= rng.choice(changes)()


def change_tensor_file(path, rng):
    kind = path.suffix[1:]
    header, tensors = tensor_file.read(path, kind)
    del header["format"], header["kind"]
    if rng.random() < 0.7:
        header = change_json(header, rng)
    else:
        change_tensor(tensors, rng)
    tensor_file.write(path, kind, header, {name: tensor.contiguous() for name, tensor in tensors.items()})


def change_store(path, rng):
    connection = sqlite3.connect(path)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    table = rng.choice(names)
    column, kind = rng.choice([(name, kind) for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})")])
    values = [row[0] for row in connection.execute(f"SELECT {column} FROM {table}")]
    new = rng.choice((None, 0, -1, 99, 2**62, 1.5, "", "x", "../../x", LONG, "[-1]", "[1e9]", "null", b"", b"\0", BOMB))
    if values and kind == "TEXT" and rng.random() < 0.5:
        with suppress(ValueError, TypeError):
            new = json.dumps(change_json(json.loads(rng.choice(values)), rng))
    elif kind == "BLOB" and rng.random() < 0.5:
        blob = bytearray(zlib.decompress(rng.choice(values)))
        if blob:
            blob[rng.randrange(len(blob))] ^= 255
        new = zlib.compress(bytes(blob[: rng.randrange(len(blob) + 1)]))
    some = "" if rng.random() < 0.5 or not values else f"WHERE {column} IS ?"
    how = rng.randrange(20)
    with suppress(sqlite3.Error, OverflowError):
        if how == 0:
            connection.execute(f"DROP TABLE {table}")
        elif how == 1:
            connection.execute(f"DELETE FROM {table} {some}", [rng.choice(values)] if some else [])
        elif how == 2:
            connection.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
        else:
            connection.execute(f"UPDATE OR REPLACE {table} SET {column} = ? {some}", [new, *([rng.choice(values)] if some else [])])
    connection.commit()
    connection.close()


CELLS = ("", "x", "nan", "inf", "1e400", "-", "1,5", '"', '"a\nb"', "a\rb", "\0", "=1+1", "é", "\U0001f600", "?", "1_000", "0x10", "9" * 400, LONG, " 1 ", "TRUE", "2020-01-01", "\x1b[31m")


def change_csv(path, rng):
    rows = [line.split(",") for line in path.read_text().splitlines()]
    row = rng.choice(rows)
    how, encoding = rng.randrange(10), rng.choice(("utf-8", "utf-8", "utf-16", "latin-1", "utf-8-sig"))
    if how < 4:
        row[rng.randrange(len(row))] = rng.choice(CELLS)
    elif how == 4:
        row.pop()
    elif how == 5:
        row += [rng.choice(CELLS)] * rng.choice((1, 20, 3000))
    elif how == 6:
        rows += [row] * rng.choice((1, 3000))
    elif how == 7:
        for one in rows:
            one += one * rng.choice((1, 30))
    elif how == 8:
        rows.pop(0) if rng.random() < 0.5 else rows.clear()
    text = rng.choice(("\n", "\n", "\r\n", "\r")).join(rng.choice((",", ",", ";", "\t", "|", " ")).join(one) for one in rows)
    content = text.encode(encoding, "replace")
    if rng.random() < 0.2:
        path.unlink()
        path = path.with_name("x.csv.gz")
        content = gzip.compress(content)
    path.write_bytes(content)
    return path


def odd_columns(rng):
    n = N
    return rng.choice((
        lambda: arrow.array([LONG] + ["a"] * (n - 1)), lambda: arrow.array([[1.0] * 1000] * n), lambda: arrow.array([{"a": 1.0}] * n), lambda: arrow.array([b"x"] * n),
        lambda: arrow.array([None] * n), lambda: arrow.array([True] * n), lambda: arrow.array(np.arange(n).astype("datetime64[ns]")),
        lambda: arrow.array(np.arange(n).astype("timedelta64[s]")), lambda: arrow.array([2**63] * n, arrow.uint64()), lambda: arrow.array(np.zeros(n, np.float16)),
        lambda: arrow.array(["a", "b"] * (n // 2)).dictionary_encode(), lambda: arrow.array([float("nan")] * n), lambda: arrow.array([1.5, None] * (n // 2)),
        lambda: arrow.array([[("a", 1)]] * n, arrow.map_(arrow.string(), arrow.int64())), lambda: arrow.array(["x"] * n, arrow.large_string()),
        lambda: arrow.array([[1.0, 2.0]] * n, arrow.list_(arrow.float64(), 2)), lambda: arrow.array(["x" * 1000] * n, arrow.binary(1000))))()


def change_parquet(path, rng):
    table = pyarrow.parquet.read_table(path)
    how = rng.randrange(8)
    if how < 4:
        place = rng.randrange(table.num_columns)
        table = table.set_column(place, rng.choice((table.column_names[place], "", "a", LONG, "a.b", "é\0")), odd_columns(rng))
    elif how == 4:
        table = table.take(np.zeros(rng.choice((0, 1, 100_000)), int))
    elif how == 5:
        table = arrow.table({name: arrow.array([table[name][0].as_py()] * 300_000) for name in table.column_names})
    elif how == 6:
        about = {"index_columns": ["name"], "columns": [], "column_indexes": [], "pandas_version": "2.0"}
        table = table.replace_schema_metadata({"pandas": json.dumps(change_json(about, rng))})
    elif how == 7:
        table = table.select(rng.sample(table.column_names, rng.randrange(table.num_columns)))
    with suppress(arrow.ArrowException):
        pyarrow.parquet.write_table(table, path, compression=rng.choice(("snappy", "zstd", "gzip", "none")), use_dictionary=rng.random() < 0.5)


def change_hdf5(path, rng):
    with h5py.File(path, "a") as file:
        name = rng.choice(("data", "y", "ids"))
        if rng.random() < 0.9:
            del file[name]
        n, how = N, rng.randrange(14)
        odd = {0: LONG, 1: MANY, 2: np.zeros((n, 2), "S1000"), 3: np.zeros(n, [("a", "f4"), ("b", "i4")]), 4: h5py.Empty("f4"), 5: 3.0, 6: np.zeros((n, 4), "f2"),
               7: np.zeros((n, 4), complex), 8: np.full((n, 4), np.nan), 9: np.zeros((0, 4))}
        name = rng.choice((name, name, "x", "group/data"))
        with suppress(ValueError, OSError):
            if how in odd:
                file[name] = odd[how]
            elif how == 10:
                file.create_dataset(name, rng.choice(((10**9, 10), (10**12,), (n, 10**6))), "f4", chunks=True, compression="gzip")
            elif how == 11:
                file[name] = rng.choice((h5py.SoftLink("/"), h5py.SoftLink("/nowhere"), h5py.ExternalLink("/etc/hostname", "/"), h5py.ExternalLink("other.h5", "/x")))
            elif how == 12:
                file.create_dataset(name, data=[np.zeros(rng.randrange(5)) for _ in range(n)], dtype=h5py.vlen_dtype("f8"))
            elif how == 13:
                file.create_dataset(name, data=[file.ref] * n, dtype=h5py.ref_dtype)


def change_npz(path, rng):
    with np.load(path) as archive:
        arrays = dict(archive)
    name, n = rng.choice(sorted(arrays)), N
    old = arrays.pop(name)
    new = rng.choice((
        lambda: old[:-1] if old.ndim else old, lambda: old.astype(rng.choice(("f2", "c8", "i1", "?", "S3", "U3", "M8[s]"))), lambda: np.full_like(old, -1), lambda: old * 10**9,
        lambda: np.zeros((n, 4, 5, 3)), lambda: np.zeros(()), lambda: np.zeros((0, 4)), lambda: np.zeros((n, 1, 1, 1, 1)), lambda: np.array([LONG] * 3),
        lambda: np.full(old.shape, np.inf), lambda: np.zeros((2000, 2000), np.uint8), lambda: np.array([10**9, 4]), lambda: np.array([4, 10**9]), lambda: np.array(b"coo")))
    with suppress(ValueError, TypeError, OverflowError):
        arrays[rng.choice((name, name, name, "x", "split"))] = new()
    if rng.random() < 0.3:
        np.savez_compressed(path, **arrays)
    else:
        np.savez(path, **arrays)
    path.with_name(path.name + ".npz").exists() and os.replace(path.with_name(path.name + ".npz"), path)


def change_npy(path, rng):
    content = path.read_bytes()
    shape = rng.choice((b"(30, 4)", b"(10000000000, 4)", b"(-1, 4)", b"(30,)", b"()", b"(3, 40)", b"(30, 4, 1, 1, 1)", b"x"))
    dtype = rng.choice((b"'<f8'", b"'<f2'", b"'|O'", b"'<U2'", b"'|V8'", b"'<c16'", b"'>i4'", b"[('a', '<f8')]", b"'<M8[s]'", b"3"))
    header = content[10:128].replace(b"(30, 4)", shape).replace(b"'<f8'", dtype).strip().ljust(117) + b"\n"
    path.write_bytes(content[:8] + struct.pack("<H", len(header)) + header + content[128:])


def png_claiming(width, height, depth=8, color=0):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    start = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", start) + chunk(b"IDAT", zlib.compress(bytes(100_000))) + chunk(b"IEND", b"")


def saved(image, form, **options):
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def change_images(folder, rng):
    place = folder / "one" / f"{rng.randrange(4)}.png"
    how = rng.randrange(14)
    if how == 0:
        side = rng.choice((3000, 10_000, 60_000, 2**31 - 1))
        place.write_bytes(png_claiming(side, side, rng.choice((1, 8, 16)), rng.choice((0, 2, 3, 6))))
    elif how == 1:
        mode, form = rng.choice((("1", "PNG"), ("L", "GIF"), ("P", "PNG"), ("RGBA", "PNG"), ("LA", "PNG"), ("I;16", "PNG"), ("CMYK", "JPEG"), ("F", "TIFF"), ("I", "TIFF"), ("RGB", "WEBP")))
        place.write_bytes(saved(Image.new(mode, rng.choice(((1, 1), (5, 6), (2000, 2000), (60_000, 1)))), form))
    elif how == 2:
        frames = [Image.new("L", (5, 6), i) for i in range(3)]
        place.write_bytes(saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    elif how == 3:
        os.unlink(place)
        os.symlink(rng.choice((folder, folder / "one", "/dev/zero", "nowhere", place.parent / "pipe")), place)
        os.mkfifo(place.parent / "pipe")
    elif how == 4:
        os.unlink(place)
        os.mkdir(place)
    elif how == 5:
        os.symlink(folder, folder / "one" / "again")
        os.symlink(folder / "one", folder / "two")
    elif how == 6:
        os.rename(place, os.fsencode(place.parent) + rng.choice((b"/\xff.png", b"/\x1b[31m\r.png", b"/=1+1.png", b"/.png", b"/x.heic", b"/x.PNG ")))
    elif how == 7:
        place.write_bytes(rng.choice((b"", b"\x89PNG", b"%!PS-Adobe", b"P6 1000000 1000000 255\n", b"BM" + bytes(100))))
    elif how == 8:
        exif = Image.Exif()
        exif[0x0112] = rng.choice((6, 8, 99))
        place.write_bytes(saved(Image.new("RGB", (5, 6)), "JPEG", exif=exif))
    elif how == 9:
        for i in range(200):
            (folder / f"{i}.png").write_bytes(png_claiming(1000, 1000, 1))
    elif how == 10:
        shutil.rmtree(folder / "one")
    else:
        change_bytes(place, rng)


def change_bytes(path, rng):
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 4, 30))):
        at = rng.randrange(max(1, len(content)))
        how = rng.randrange(4)
        if how == 0:
            content[at : at + 1] = bytes([rng.randrange(256)])
        elif how == 1:
            del content[at : at + rng.choice((1, 50, 10**9))]
        elif how == 2:
            content[at : at + 4] = struct.pack("<I", rng.choice((0, 2**31 - 1, 2**32 - 1, rng.randrange(2**32))))
        else:
            content[at : at + 20] = content[:20]
    path.write_bytes(content)


CHANGES = {".model": change_tensor_file, ".result": change_tensor_file, ".checkpoint": change_tensor_file, ".store": change_store, ".csv": change_csv,
           ".parquet": change_parquet, ".h5": change_hdf5, ".npz": change_npz, ".npy": change_npy, ".images": change_images}


def changed(kind, rng, folder):
    """Copy a valid file into the folder and change one thing."""
    path = folder / kind
    (shutil.copytree if kind == "x.images" else shutil.copyfile)(originals() / kind, path)
    with suppress(Exception):  # a change that is no valid one
        return (change_bytes if rng.random() < 0.1 and path.is_file() else CHANGES[path.suffix])(path, rng) or path
    return path


# Use


def use(path, rng):
    """Read what a file holds, all of it, as commands do."""
    if path.suffix == ".model":
        model = reclust.load(path)
        json.dumps(card(model)), model._repr_mimebundle_()
        return model.labels_, model.baseline_, model.candidates_, model.cut(1), model.cut(2)
    if path.suffix == ".result":
        return Result.load(path).model(0)
    if path.suffix == ".checkpoint":
        return TrainingState.read(Checkpoint(path), tensor_file.read(path, "checkpoint")[0].get("identity"))
    if path.suffix == ".store":
        return use_store(path)
    options = {}
    if path.suffix in (".csv", ".gz", ".parquet"):
        options = rng.choice(({"ids": "name", "labels": "kind"}, {"drop": ["name", "kind"]}, {"ids": "name", "drop": ["kind"]}, {"labels": "name", "drop": ["kind"]}))
    if path.suffix == ".h5":
        options = rng.choice(({}, {"labels": "y"}, {"labels": "ids"}, {"key": "data"}))
    if path.suffix == ".images":
        options = rng.choice(({}, {"size": (8, 8)}, {"on_error": "skip"}, {"labels": "folder", "size": (4, 4, 1)}))
    return accept(read(path, **options)).array.sum()


def use_store(path):
    with StoreReader(path) as store:
        store.status(), store.failures(), store.shares()
        for study in store.studies():
            store.plain_spec(study), store.means(study), store.means(study, by="keep", measures=("silhouette", "seconds")), store.measures(study)
            runs = store.runs(study)
            for run in runs["run"][runs["state"] == "finished"]:
                store.history(run), store.labels(run), store.array(run, "centers"), store.provenance(run), store.plain_settings(run)
            if store.finished(study, (), ("run",)):
                render(tables(store, study), "txt")
        export(store, path.parent / "tables")


class Late(BaseException):
    """A case takes too long."""


def late(*_):
    raise Late


def broken_law(seed, folder):
    """Run one case, and return what is wrong, if anything."""
    rng = random.Random(seed)
    kind = rng.choice(KINDS)
    path = changed(kind, rng, folder)
    size = sum(one.lstat().st_size for one in path.rglob("*")) if path.is_dir() else path.stat().st_size
    forget_peak()
    before, began, error = resident(), time.process_time(), None  # seconds of its own: other processes may be in the way
    signal.setitimer(signal.ITIMER_PROF, 2 * SECONDS)
    signal.alarm(60 * SECONDS)
    try:
        use(path, rng)
    except (ValueError, OSError) as raised:
        error = raised
    except KeyError as raised:  # unknown names in a store
        error = raised if str(path) in str(raised) else f"{type(raised).__name__}: {raised}"
    except BaseException as raised:
        error = f"{type(raised).__name__}: {str(raised)[:300]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    seconds, taken = time.process_time() - began, resident(peak=True) - before
    if isinstance(error, str):
        return f"{kind}: {error}"
    if isinstance(error, ValueError) and not 0 < len(str(error)) < 3000:
        return f"{kind}: message of {len(str(error))} characters: {str(error)[:300]}"
    if seconds > SECONDS:
        return f"{kind}: {seconds:.0f} seconds"
    if taken > MEGABYTES * 2**20 + TIMES * size:
        return f"{kind}: {taken / 2**20:.0f} MB for {size} bytes ({str(error)[:200]})"
    return None


def main(first, count):
    warnings.simplefilter("ignore")
    logging.disable()
    os.environ["RECLUST_DATA"] = tempfile.mkdtemp()
    for package in ("reclust", "reclust.studies"):  # what an unknown kind of value imports, once
        import_all(package)
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, late)
    originals()
    resource.setrlimit(resource.RLIMIT_AS, (resident() + 16 * 2**30, resource.RLIM_INFINITY))  # address space, of which torch reserves a lot
    for seed in range(first, first + count):
        print(json.dumps({"case": seed}), flush=True)
        with tempfile.TemporaryDirectory() as folder:
            wrong = broken_law(seed, Path(folder))
        if wrong:
            print(json.dumps({"case": seed, "wrong": wrong}), flush=True)
    shutil.rmtree(originals())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
