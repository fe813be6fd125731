"""The reproduction of the paper: pages and figures from the committed records."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reclust.studies.figures import FIGURES, MissingData, draw, save
from reclust.studies.store.reader import StoreReader
from reclust.studies.store.records import gathered
from reclust.studies.toml import read_toml
from reclust.utils.files import write_text

from . import svg
from .blocks import fill, filled
from .cells import MAIN, PARTIAL, SETS
from .claims import CLAIMS
from .coverage import ABLATIONS, BEYOND, catalog_study
from .overview import overview
from .pages import FIGURES_FOLDER, OVERVIEW, SUMMARY, Remarks, cell_names, pages
from .readings import show_tf32

__all__ = ["REMARKS", "custom_studies", "drawn", "filled", "open_records", "pages", "read_remarks",
           "reproduce"]

REMARKS = "reproduction_remarks.toml"
_log = logging.getLogger(__name__)


@contextmanager
def open_records(folder: str | os.PathLike[str]) -> Iterator[StoreReader]:
    """Open all stores of a folder as one, with the parts of a study joined."""
    with gathered(sorted(Path(folder).glob("*.sqlite")), study=catalog_study) as store:
        if MAIN in store.studies():
            show_tf32(store)
        yield store


def read_remarks(path: str | os.PathLike[str]) -> Remarks:
    """Read remarks from a TOML file, whose comments explain the keys."""
    path = Path(path)
    found = read_toml(path) if path.is_file() else {}
    known = {SUMMARY, *ABLATIONS, *BEYOND, *(f"{MAIN}/{dataset}" for dataset in (*SETS, *PARTIAL)),
             *(f"claims/{claim.name}" for claim in CLAIMS),
             *(f"figures/{name}" for name in FIGURES)}
    known = known.union(*(cell_names(study) for study in (MAIN, *ABLATIONS, *BEYOND)))
    unknown = [key for key in found if key not in known]
    if unknown:
        raise ValueError(f"{path} has a remark on {unknown[0]!r}, which does not exist.")
    return found


def custom_studies(folder: str | os.PathLike[str]) -> list[str]:
    """Return the studies in these stores that are not in the catalog and not on the pages."""
    found: dict[str, None] = {}
    for path in sorted(Path(folder).glob("*.sqlite")):
        with StoreReader(path) as reader:
            found |= dict.fromkeys(
                name for name in reader.studies() if catalog_study(reader, name) is None)
    return list(found)


def drawn(folder: str | os.PathLike[str]) -> list[str]:
    """Return the figures that are in a folder of pages."""
    return [name for name in (OVERVIEW, *FIGURES)
            if (Path(folder) / FIGURES_FOLDER / f"{name}.svg").is_file()]


def reproduce(records: str | os.PathLike[str], output: str | os.PathLike[str], *,
              pages_to_fill: Iterable[str | os.PathLike[str]] = ()) -> list[Path]:
    """Write pages and figures from the stores in a folder, and return the files written.

    The blocks of `pages_to_fill` are rewritten, too. Remarks are read from the output folder.
    """
    output = Path(output)
    if not any(Path(records).glob("*.sqlite")):
        raise FileNotFoundError(f"There are no stores (*.sqlite) in {records}.")
    remarks = read_remarks(output / REMARKS)
    with open_records(records) as reader:
        written = list(_figures(reader, output / FIGURES_FOLDER))
        for name, text in pages(reader, remarks, drawn(output)).items():
            (output / name).parent.mkdir(exist_ok=True)
            write_text(output / name, text)
            written.append(output / name)
        written += [fill(path, reader) for path in pages_to_fill]
    return written


def _figures(reader: StoreReader, folder: Path) -> Iterable[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    figure = overview(reader)
    if figure is not None:
        save(figure, folder / f"{OVERVIEW}.svg")
        svg.rewrite(folder / f"{OVERVIEW}.svg")
        yield folder / f"{OVERVIEW}.svg"
    for name in FIGURES:
        path, made = folder / f"{name}.svg", folder / f".{name}.svg"
        try:
            draw(reader, name, made)
            svg.rewrite(made)
            yield made.replace(path)
        except MissingData as missing:
            path.unlink(missing_ok=True)
            _log.info("left out: %s", missing)
        finally:
            made.unlink(missing_ok=True)
