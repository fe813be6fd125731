"""Studies: many runs, planned as one value, computed in groups, kept in one file."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .backends import InProcess, Processes, RayCluster
    from .baselines import Baselines, baselines_of, run_baselines
    from .catalog import named, names
    from .execute import Conditions
    from .protocols import AutoencoderProtocol, ContrastiveProtocol
    from .reading import StoreReader
    from .records import Kept, compact
    from .running import Ran, run
    from .spec import Study, Variant
    from .store import Outcome, PlannedRun, Store, export
    from .summaries import Failure, Status
    from .toml import read_study, write_study
else:
    __getattr__, __dir__ = lazily(__name__, {
        "backends": "InProcess Processes RayCluster",
        "baselines": "Baselines baselines_of run_baselines",
        "catalog": "named names",
        "execute": "Conditions",
        "protocols": "AutoencoderProtocol ContrastiveProtocol",
        "reading": "StoreReader",
        "records": "Kept compact",
        "running": "Ran run",
        "spec": "Study Variant",
        "store": "Outcome PlannedRun Store export",
        "summaries": "Failure Status",
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
