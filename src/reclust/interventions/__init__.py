"""Interventions between epochs, composed of small steps."""

from .adaptive import WhenSettled
from .brb import BRB
from .controls import DisentangledReset, NoisyRecluster
from .exchange import Exchange
from .noise import CurrentNoise, InitialNoise, KaimingNoise, WeightNoise
from .reclustering.group_means import NativeRecluster, RecomputeCenters
from .reclustering.kmeans import KMeans, KMeansPlusPlus
from .reclustering.medoids import KMedoids
from .reclustering.mixture import GaussianMixture
from .reclustering.recluster import Method, RandomCenters, Recluster
from .soft_reset import Perturb, ResetMomentum, Shrink, SoftReset
from .split_merge import SplitMerge
from .steps import Every, Intervention, Step
from .target import Layer, Peers, Target

__all__ = [
    "BRB", "CurrentNoise", "DisentangledReset", "Every", "Exchange", "GaussianMixture",
    "InitialNoise", "Intervention", "KMeans", "KMeansPlusPlus", "KMedoids", "KaimingNoise",
    "Layer", "Method", "NativeRecluster", "NoisyRecluster", "Peers", "Perturb", "RandomCenters",
    "Recluster", "RecomputeCenters", "ResetMomentum", "Shrink", "SoftReset", "SplitMerge",
    "Step", "Target", "WeightNoise", "WhenSettled",
]
