"""Studies: many runs, planned as one value, computed in groups, kept in one file."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .backends import InProcess, Processes, RayCluster
    from .baselines import Baselines, baselines_of, run_baselines
    from .catalog import named, names
    from .execute import Conditions
    from .protocols import AutoencoderProtocol, ContrastiveProtocol
    from .records import Kept, compact
    from .running import Ran, run
    from .spec import Study, Variant
    from .store import Failure, Outcome, PlannedRun, Status, Store, StoreReader, export
    from .toml import read_study, write_study
else:
    __getattr__, __dir__ = lazily(__name__, {
        "backends": "InProcess Processes RayCluster",
        "baselines": "Baselines baselines_of run_baselines",
        "catalog": "named names",
        "execute": "Conditions",
        "protocols": "AutoencoderProtocol ContrastiveProtocol",
        "records": "Kept compact",
        "running": "Ran run",
        "spec": "Study Variant",
        "store": "Failure Outcome PlannedRun Status Store StoreReader export",
        "toml": "read_study write_study",
    })

__all__ = [
    "AutoencoderProtocol",
    "Baselines",
    "Conditions",
    "ContrastiveProtocol",
    "Failure",
    "InProcess",
    "Kept",
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
    "baselines_of",
    "compact",
    "export",
    "named",
    "names",
    "read_study",
    "run",
    "run_baselines",
    "write_study",
]
