"""Clustering objectives."""

from .base import GradientOnly, Objective, Staged, State, nearest, squared_distances
from .dcn import DCNObjective
from .dec import DECObjective, IDECObjective, soft_assignment, target_distribution
from .distillation import DistillationObjective
from .prototypes import GCCObjective, SCANObjective, SeCuObjective
from .self_label import HeadObjective, SelfLabelObjective

__all__ = [
    "DCNObjective", "DECObjective", "DistillationObjective", "GCCObjective", "GradientOnly",
    "HeadObjective", "IDECObjective", "Objective", "SCANObjective", "SeCuObjective",
    "SelfLabelObjective", "Staged", "State", "nearest", "soft_assignment", "squared_distances",
    "target_distribution",
]
