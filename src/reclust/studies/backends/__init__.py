"""Backends: compute groups in this process, in several, or on a Ray cluster."""

from .base import Backend, InProcess
from .cluster import RayCluster
from .processes import Processes

__all__ = ["Backend", "InProcess", "Processes", "RayCluster"]
