"""Clustering objectives."""

from .base import Objective, Staged, State, Still, nearest, squared_distances
from .dcn import DCNObjective
from .dec import DECObjective, IDECObjective, soft_assignment, target_distribution

__all__ = [
    "DCNObjective",
    "DECObjective",
    "IDECObjective",
    "Objective",
    "Staged",
    "State",
    "Still",
    "nearest",
    "soft_assignment",
    "squared_distances",
    "target_distribution",
]
