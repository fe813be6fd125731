"""What may happen between epochs, as sentences of small steps."""

from ..kmeans import KMeans, KMeansPlusPlus
from .adaptive import WhenSettled
from .base import Every, Intervention, Step
from .brb import BRB
from .controls import DisentangledReset, NoisyRecluster
from .exchange import Exchange
from .group_means import NativeRecluster, RecomputeCenters
from .medoids import KMedoids
from .mixture import GaussianMixture
from .momentum import ResetMomentum
from .noise import CurrentNoise, InitialNoise, KaimingNoise, Noise
from .recluster import Method, RandomCenters, Recluster
from .soft_reset import Perturb, Shrink, SoftReset
from .split_merge import SplitMerge
from .target import Layer, Peers, Target

__all__ = [
    "BRB",
    "CurrentNoise",
    "DisentangledReset",
    "Every",
    "Exchange",
    "GaussianMixture",
    "InitialNoise",
    "Intervention",
    "KMeans",
    "KMeansPlusPlus",
    "KMedoids",
    "KaimingNoise",
    "Layer",
    "Method",
    "NativeRecluster",
    "Noise",
    "NoisyRecluster",
    "Peers",
    "Perturb",
    "RandomCenters",
    "Recluster",
    "RecomputeCenters",
    "ResetMomentum",
    "Shrink",
    "SoftReset",
    "SplitMerge",
    "Step",
    "Target",
    "WhenSettled",
]
