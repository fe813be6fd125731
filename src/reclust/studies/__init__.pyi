from . import published as published
from .backends import (
    InProcess as InProcess,
    Processes as Processes,
    RayCluster as RayCluster,
)
from .baselines import (
    Baselines as Baselines,
    baselines_of as baselines_of,
    run_baselines as run_baselines,
)
from .catalog import (
    named as named,
    names as names,
)
from .execute import Conditions as Conditions
from .protocols import (
    AutoencoderProtocol as AutoencoderProtocol,
    ContrastiveProtocol as ContrastiveProtocol,
)
from .runner import (
    RunSummary as RunSummary,
    run as run,
)
from .store.reader import (
    Failure as Failure,
    Status as Status,
    StoreReader as StoreReader,
)
from .store.records import compact as compact
from .store.store import (
    Outcome as Outcome,
    PlannedRun as PlannedRun,
    Store as Store,
    export as export,
)
from .study import (
    Study as Study,
    Variant as Variant,
)
from .toml import (
    read_study as read_study,
    write_study as write_study,
)
