"""Studies: many runs, planned as one value, computed in groups, kept in one file."""

from .backends import InProcess, Processes, RayCluster
from .catalog import named, names
from .execute import Conditions
from .protocols import AutoencoderProtocol, ContrastiveProtocol
from .run import Ran, run
from .spec import Study, Variant
from .store import Failure, Outcome, PlannedRun, Status, Store, StoreReader, export
from .toml import read_study, write_study

__all__ = [
    "AutoencoderProtocol",
    "Conditions",
    "ContrastiveProtocol",
    "Failure",
    "InProcess",
    "Outcome",
    "PlannedRun",
    "Processes",
    "Ran",
    "RayCluster",
    "Status",
    "Store",
    "StoreReader",
    "Study",
    "Variant",
    "export",
    "named",
    "names",
    "read_study",
    "run",
    "write_study",
]
