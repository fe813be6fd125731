"""The reproduction of the paper: pages and figures from committed records, by one command."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reclust.studies.figures import FIGURES, MissingData, draw
from reclust.studies.store.reader import StoreReader
from reclust.studies.store.records import gathered
from reclust.studies.toml import read_toml
from reclust.utils.files import write_text

from .blocks import fill, filled
from .cells import APART, MAIN, SETS
from .claims import CLAIMS
from .coverage import ABLATIONS, BEYOND, study_of
from .page import FIGURES_FOLDER, SUMMARY, Remarks, cell_names, pages

__all__ = ["REMARKS", "drawn", "filled", "not_on_the_page", "opened", "pages", "read_remarks", "reproduce"]

REMARKS = "reproduction_remarks.toml"
_log = logging.getLogger(__name__)


@contextmanager
def opened(folder: str | os.PathLike[str]) -> Iterator[StoreReader]:
    """All stores of a folder as one, by the order of their names; parts of the paper's studies are put together."""
    stores = sorted(Path(folder).glob("*.sqlite"))
    with gathered(stores, study=study_of) as reader:
        yield reader


def read_remarks(path: str | os.PathLike[str]) -> Remarks:
    """Key -> text, from a TOML file: STUDY/SET/ALGORITHM/VARIANT/pretrained or scratch, acc-table/SET for all of its cells,
    STUDY for all of another one, claims/NAME, figures/NAME, or summary; none without a file."""
    path = Path(path)
    found = read_toml(path) if path.is_file() else {}
    known = {f"{MAIN}/{dataset}" for dataset in (*SETS, *APART)} | {f"claims/{claim.name}" for claim in CLAIMS}
    known |= {SUMMARY, *ABLATIONS, *BEYOND, *(f"figures/{name}" for name in FIGURES)}
    known = known.union(*(cell_names(study) for study in (MAIN, *ABLATIONS, *BEYOND)))
    for key, text in found.items():
        if key not in known:
            raise ValueError(f"{path} has a remark on {key!r}, which is no cell: name STUDY/SET/ALGORITHM/VARIANT/START, such "
                             "as acc-table/usps/dec/brb/scratch or …/pretrained, acc-table/SET, STUDY, claims/NAME, "
                             "figures/NAME, or summary.")
        if not isinstance(text, str):
            raise ValueError(f"{path}: the remark on {key!r} must be a text, got {text!r}.")
    return found


def not_on_the_page(folder: str | os.PathLike[str]) -> list[str]:
    """The studies in these stores that are none of the catalog's: small forms, and those of one's own."""
    found: dict[str, None] = {}
    for path in sorted(Path(folder).glob("*.sqlite")):
        with StoreReader(path) as reader:
            found |= dict.fromkeys(name for name in reader.studies() if study_of(reader, name) is None)
    return list(found)


def drawn(folder: str | os.PathLike[str]) -> list[str]:
    """The figures that are there."""
    return [name for name in FIGURES if (Path(folder) / FIGURES_FOLDER / f"{name}.svg").is_file()]


def reproduce(records: str | os.PathLike[str], output: str | os.PathLike[str], *,
              pages_to_fill: Iterable[str | os.PathLike[str]] = ()) -> list[Path]:
    """Write the pages and the figures that the stores in a folder have records for into another; the files written.

    pages_to_fill: pages written by hand with blocks of tables in them, see `blocks`.
    Remarks are read from `reproduction_remarks.toml` there. The same records give the same pages, byte for byte.
    """
    output = Path(output)
    if not any(Path(records).glob("*.sqlite")):
        raise FileNotFoundError(f"There are no stores (*.sqlite) in {records}: `reclust study compact` makes them.")
    remarks = read_remarks(output / REMARKS)
    with opened(records) as reader:
        written = list(_figures(reader, output / FIGURES_FOLDER))
        for name, text in pages(reader, remarks, drawn(output)).items():
            write_text(output / name, text)
            written.append(output / name)
        written += [fill(path, reader) for path in pages_to_fill]
    return written


def _figures(reader: StoreReader, folder: Path) -> Iterable[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in FIGURES:
        path, made = folder / f"{name}.svg", folder / f".{name}.svg"
        try:
            draw(reader, name, made)
            yield made.replace(path)
        except MissingData as missing:
            path.unlink(missing_ok=True)
            _log.info("left out: %s", missing)
        finally:
            made.unlink(missing_ok=True)
