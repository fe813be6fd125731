"""load(): the named sets, from their original files or a packed `.npz` in the data folder, downloaded where missing."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..dataset import TRAIN, Dataset
from ..errors import DataError
from ..reading import read
from . import cifar, gtsrb, mnist, optdigits, usps
from .download import VARIABLE, data_folder, fetch
from .known_set import Form, NamedSet, Part

SETS = {known.name: known for family in (mnist, usps, optdigits, gtsrb, cifar) for known in family.SETS}


def names() -> tuple[str, ...]:
    """The sets that `load` knows by name."""
    return tuple(SETS)


def load(name: str, *, folder: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """A set by its name, complete and checked: images as distributed, labels, split, what to cite.

    Looked for in `folder` (else the folder RECLUST_DATA names, else the platform's cache): the original files, then
    NAME.npz with `images`, `labels` and perhaps `split`; then downloaded. Any other NAME.npz in the folder loads by its
    name too; one whose name starts with that of a known set, as kmnist_test, is checked and described as part of it.
    """
    root, known = data_folder(folder), SETS.get(name)
    original = None if known is None else _original(known, root)
    if known is not None and original is not None:
        return _from_form(known, *original)
    packed = root / f"{name}.npz"
    if _is_packed(name, packed):
        return _from_npz(name, packed)
    if known is None:
        if packed.is_file() and packed.name == f"{name}.npz":
            raise DataError(f"{packed} cannot be loaded by its name: rename it, with letters, digits and . + - _ alone.")
        raise DataError(
            f"There is no set named {name!r} and no {packed}. Known: {', '.join(SETS)}. For other files: read(path)."
        )
    if not download:
        raise DataError(f"{name} is not in {root}. {_what_to_put_where(known, root)}")
    return _downloaded(known, root)


def located(name: str, *, folder: str | os.PathLike[str] | None = None) -> tuple[Path, ...] | None:
    """The files that `load` would read of a known set, none where it is embedded; None where it would have to download them.

    Nothing is opened: whether they are what they should be is for `load` to say.
    """
    root = data_folder(folder)
    original, packed = _original(SETS[name], root), root / f"{name}.npz"
    if original is not None:
        return tuple(original[1])
    return (packed,) if _is_packed(name, packed) else None


def own_file(name: str, *, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """The NAME.npz that `load` would read of a set that nobody knows but its user, and may change; None for others."""
    packed = data_folder(folder) / f"{name}.npz"
    return packed if name not in SETS and _is_packed(name, packed) else None


def _original(known: NamedSet, root: Path) -> tuple[Form, list[Path]] | None:
    """The first form of which every file is here."""
    for form in known.forms:
        paths = [path for file in form.files if (path := _find(known, file.name, root)) is not None]
        if len(paths) == len(form.files):
            return form, paths
    return None


def _is_packed(name: str, packed: Path) -> bool:
    return re.fullmatch(r"\w[\w.+-]*", name) is not None and packed.is_file()


def _downloaded(known: NamedSet, root: Path) -> Dataset:
    form = known.forms[0]
    try:
        paths = [_find(known, file.name, root) or fetch(file, root / known.folders[0]) for file in form.files]
    except (DataError, OSError) as error:
        raise DataError(f"{known.name} is not in {root}. {error} {_what_to_put_where(known, root)}") from error
    return _from_form(known, form, paths)


def _find(known: NamedSet, file: str, root: Path) -> Path | None:
    return next((path for folder in known.folders if (path := root / folder / file).is_file()), None)


def _what_to_put_where(known: NamedSet, root: Path) -> str:
    ways = [", ".join(file.urls[0] if file.urls else file.name for file in form.files) for form in known.forms]
    return (
        f"Put into {root / known.folders[0]}: {'; or '.join(ways)}; or into {root}: {known.name}.npz with `images` and "
        f"`labels`. Another folder: folder=… in Python, --data of studies, --folder of `reclust data`, or the variable "
        f"{VARIABLE}."
    )


def _from_form(known: NamedSet, form: Form, paths: Sequence[Path]) -> Dataset:
    parts = form.read(paths)
    where = ", ".join(map(str, paths)) or known.name
    known.check_whole(parts, where=where, exact=form.exact)
    ids = (
        None
        if any(part.ids is None for part in parts)
        else np.concatenate([part.ids for part in parts if part.ids is not None])
    )
    whole = Dataset(
        samples=np.concatenate([part.images for part in parts]),
        labels=np.concatenate([part.labels for part in parts]).astype(np.int64),
        split=np.repeat(np.arange(len(parts), dtype=np.uint8), known.counts) if len(parts) > 1 else None,
        ids=ids,
        name=known.name,
        image_shape=known.image_shape,
        files=tuple(map(str, paths)),
    )
    return _described(whole, known, known.n_clusters)


def _from_npz(name: str, path: Path) -> Dataset:
    found = replace(read(path), name=name)
    family = max((known for known in SETS if name == known or name.startswith(known + "_")), key=len, default=None)
    if family is None:
        return found
    known = SETS[family]
    if found.labels is None:
        raise DataError(f"{path} has no `labels`; a file of the set {family} needs `images` and `labels`.")
    known.check_images(np.asarray(found.samples), found.labels, where=str(path))
    if name == family:
        # Parts are told apart where the file says so; without a split the whole is checked as one.
        first = np.full(len(found), True) if found.split is None else found.split == TRAIN
        parts = [Part(found.images[mask], found.labels[mask]) for mask in (first, ~first) if mask.any()]
        whole = replace(known, counts=(sum(known.counts),)) if len(parts) == 1 else known
        whole.check_whole(parts, where=str(path), exact=True)
    return _described(found, known, len(np.unique(found.labels)))


def _described(found: Dataset, known: NamedSet, n_clusters: int) -> Dataset:
    return replace(
        found,
        n_clusters=n_clusters,
        max_value=float(known.max_value),
        resize_to=known.resize_to,
        equalize=known.equalize,
        citation=known.citation,
        licence=known.licence,
    )
