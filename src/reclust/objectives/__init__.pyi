from .base import (
    GradientOnly as GradientOnly,
    Objective as Objective,
    Staged as Staged,
    State as State,
    nearest as nearest,
    squared_distances as squared_distances,
)
from .dcn import DCNObjective as DCNObjective
from .dec import (
    DECObjective as DECObjective,
    IDECObjective as IDECObjective,
    soft_assignment as soft_assignment,
    target_distribution as target_distribution,
)
from .prototypes import (
    DistillationObjective as DistillationObjective,
    GCCObjective as GCCObjective,
    SCANObjective as SCANObjective,
    SeCuObjective as SeCuObjective,
)
from .self_label import (
    HeadObjective as HeadObjective,
    SelfLabelObjective as SelfLabelObjective,
)
