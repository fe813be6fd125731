"""Backends: compute groups in this process, in several, or on a Ray cluster."""

from .cluster import RayCluster
from .local import Backend, InProcess, Processes

__all__ = ["Backend", "InProcess", "Processes", "RayCluster"]
