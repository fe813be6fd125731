"""The function `load`: named sets from their original files, a packed `.npz` or the network."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..dataset import TRAIN, Dataset
from ..errors import DataError
from ..reading import read
from . import color, grey
from .download import VARIABLE, RemoteFile, data_folder, fetch
from .known_set import Form, NamedSet, SetPart


def _read_facts() -> dict[str, NamedSet]:
    sets, readers = {}, grey.READERS | color.READERS
    text = (files(__package__) / "sets.json").read_text(encoding="utf-8")
    for name, facts in json.loads(text).items():
        forms = []
        for form, reader in zip(facts.pop("forms"), readers[name], strict=True):
            mirrors, checksums = form.pop("mirrors"), form.pop("files").items()
            forms.append(Form(tuple(
                RemoteFile(file, tuple(mirror + file for mirror in mirrors), checksum)
                for file, checksum in checksums), reader, **form))
        tuples: dict[str, Any] = {key: tuple(fact) if isinstance(fact, list) else fact
                                  for key, fact in facts.items()}
        sets[name] = NamedSet(name=name, forms=tuple(forms), **tuples)
    return sets


SETS = _read_facts()


def names() -> tuple[str, ...]:
    """Return the names of the sets that `load` can download."""
    return tuple(SETS)


def load(name: str, *, folder: str | os.PathLike[str] | None = None,
         download: bool = True) -> Dataset:
    """Load a set by its name, complete and checked.

    Parameters
    ----------
    name
        A name in `names()`, or NAME of any file NAME.npz in the data folder with `images`, `labels`
        and perhaps `split`. A file named after a known set, such as kmnist_test.npz, is checked and
        described as a part of it.
    folder
        Data folder; by default the folder in the variable RECLUST_DATA, or else the platform's
        cache. The original files are looked for first, then NAME.npz.
    download
        Download the original files if nothing is found.

    Examples
    --------
    >>> from reclust.data import load
    >>> load("digits").images.shape
    (1797, 8, 8)
    """
    root, known = data_folder(folder), SETS.get(name)
    if known and (original := _original(known, root)):
        return _from_form(known, *original)
    if packed := _packed(name, root):
        return _from_npz(name, packed)
    if known is None:
        raise DataError(f"There is no set named {name!r} and no {root / name}.npz. Known: "
                        f"{', '.join(SETS)}. For other files: read(path).")
    form, paths, reason = known.forms[0], None, ""
    if download:
        try:
            paths = [_find(known, file.name, root) or fetch(file, root / known.folders[0])
                     for file in form.files]
        except (DataError, OSError) as error:
            reason = f"{error} "
    if paths is None:
        raise DataError(f"{name} is not in {root}. {reason}{_instructions(known, root)}")
    return _from_form(known, form, paths)


def local_files(name: str, *,
                folder: str | os.PathLike[str] | None = None) -> tuple[Path, ...] | None:
    """Return the files that `load` would read, or None if it would download them."""
    root = data_folder(folder)
    if original := _original(SETS[name], root):
        return tuple(original[1])
    packed = _packed(name, root)
    return None if packed is None else (packed,)


def custom_file(name: str, *, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the NAME.npz of a set that is not a known one, if there is such a file."""
    return None if name in SETS else _packed(name, data_folder(folder))


def _original(known: NamedSet, root: Path) -> tuple[Form, list[Path]] | None:
    for form in known.forms:
        paths = [_find(known, file.name, root) for file in form.files]
        if None not in paths:
            return form, [path for path in paths if path is not None]
    return None


def _find(known: NamedSet, file: str, root: Path) -> Path | None:
    candidates = (root / folder / file for folder in known.folders)
    return next((path for path in candidates if path.is_file()), None)


def _packed(name: str, root: Path) -> Path | None:
    path = root / f"{name}.npz"
    return path if re.fullmatch(r"\w[\w.+-]*", name) and path.is_file() else None


def _instructions(known: NamedSet, root: Path) -> str:
    ways = "; or ".join(", ".join(file.urls[0] if file.urls else file.name for file in form.files)
                        for form in known.forms)
    return (f"Put into {root / known.folders[0]}: {ways}; or into {root}: {known.name}.npz with "
            "`images` and `labels`. Another folder: folder=… in Python, --data of studies, "
            f"--folder of `reclust data`, or the variable {VARIABLE}.")


def _from_form(known: NamedSet, form: Form, paths: Sequence[Path]) -> Dataset:
    if form.verify:
        for file, path in zip(form.files, paths, strict=True):
            file.verify(path)
    parts = form.read(paths)
    known.check_whole(parts, where=", ".join(map(str, paths)) or known.name)
    ids = [part.ids for part in parts if part.ids is not None]
    whole = Dataset(
        name=known.name, image_shape=known.image_shape, files=tuple(map(str, paths)),
        samples=np.concatenate([part.images for part in parts]),
        labels=np.concatenate([part.labels for part in parts]).astype(np.int64),
        split=(np.repeat(np.arange(len(parts), dtype=np.uint8), known.counts)
               if len(parts) > 1 else None),
        ids=np.concatenate(ids) if ids else None)
    return _described(whole, known, known.n_clusters)


def _from_npz(name: str, path: Path) -> Dataset:
    dataset = replace(read(path), name=name)
    family = max((known for known in SETS if name == known or name.startswith(known + "_")),
                 key=len, default=None)
    if family is None:
        return dataset
    known = SETS[family]
    if dataset.labels is None:
        raise DataError(f"{path} has no `labels`; a file of the set {family} needs them.")
    if name == family:
        # Without a split in the file, the set is checked as one part.
        first = np.full(len(dataset), True) if dataset.split is None else dataset.split == TRAIN
        parts = [SetPart(np.asarray(dataset.samples)[mask], dataset.labels[mask])
                 for mask in (first, ~first) if mask.any()]
        whole = replace(known, counts=(sum(known.counts),)) if len(parts) == 1 else known
        whole.check_whole(parts, where=str(path))
    else:
        known.check_images(np.asarray(dataset.samples), dataset.labels, where=str(path))
    return _described(dataset, known, len(np.unique(dataset.labels)))


def _described(dataset: Dataset, known: NamedSet, n_clusters: int) -> Dataset:
    return replace(dataset, n_clusters=n_clusters, max_value=float(known.max_value),
                   resize_to=known.resize_to, equalize=known.equalize, citation=known.citation,
                   licence=known.licence)
