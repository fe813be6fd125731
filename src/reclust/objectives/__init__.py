"""Clustering objectives."""

from .base import GradientOnly, Objective, Staged, State, nearest, squared_distances
from .dcn import DCNObjective
from .dec import DECObjective, IDECObjective, soft_assignment, target_distribution

__all__ = [
    "DCNObjective",
    "DECObjective",
    "IDECObjective",
    "Objective",
    "Staged",
    "State",
    "GradientOnly",
    "nearest",
    "soft_assignment",
    "squared_distances",
    "target_distribution",
]
