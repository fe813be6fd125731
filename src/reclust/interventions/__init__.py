"""What may happen between epochs, as sentences of small steps."""

from .adaptive import WhenSettled
from .brb import BRB
from .controls import DisentangledReset, NoisyRecluster
from .exchange import Exchange
from .momentum import ResetMomentum
from .noise import CurrentNoise, InitialNoise, KaimingNoise, Noise
from .reclustering.group_means import NativeRecluster, RecomputeCenters
from .reclustering.kmeans import KMeans, KMeansPlusPlus
from .reclustering.medoids import KMedoids
from .reclustering.mixture import GaussianMixture
from .reclustering.recluster import Method, RandomCenters, Recluster
from .soft_reset import Perturb, Shrink, SoftReset
from .split_merge import SplitMerge
from .steps import Every, Intervention, Step
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
