"""Clustering objectives."""

from .base import GradientOnly, Objective, Staged, State, nearest, squared_distances
from .dcn import DCNObjective
from .dec import DECObjective, IDECObjective, soft_assignment, target_distribution
from .distillation import DistillationObjective
from .self_label import HeadObjective, SelfLabelObjective

__all__ = [
    "DCNObjective", "DECObjective", "DistillationObjective", "GradientOnly", "HeadObjective",
    "IDECObjective", "Objective", "SelfLabelObjective", "Staged", "State", "nearest",
    "soft_assignment", "squared_distances", "target_distribution",
]
