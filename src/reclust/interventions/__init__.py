"""What may happen between epochs, as sentences of small steps."""

from .base import Every, Intervention, Layer, Step, Target
from .brb import BRB
from .momentum import ResetMomentum
from .recluster import Method, Recluster
from .soft_reset import InitialNoise, KaimingNoise, Noise, SoftReset

__all__ = [
    "BRB",
    "Every",
    "InitialNoise",
    "Intervention",
    "KaimingNoise",
    "Layer",
    "Method",
    "Noise",
    "Recluster",
    "ResetMomentum",
    "SoftReset",
    "Step",
    "Target",
]
