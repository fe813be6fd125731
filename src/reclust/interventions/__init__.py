"""Interventions between epochs, composed of small steps."""

from .adaptive import WhenSettled
from .brb import BRB
from .controls import DisentangledReset, NoisyRecluster
from .exchange import Exchange
from .reclustering.kmeans import KMeans, KMeansPlusPlus
from .reclustering.medoids import KMedoids
from .reclustering.mixture import GaussianMixture
from .reclustering.recluster import NativeRecluster, RandomCenters, Recluster, RecomputeCenters
from .soft_reset import (
    CurrentNoise,
    InitialNoise,
    KaimingNoise,
    Perturb,
    ResetMomentum,
    Shrink,
    SoftReset,
)
from .split_merge import SplitMerge
from .steps import Every, Intervention, Step
from .target import Layer, Peers, Target

__all__ = [
    "BRB", "CurrentNoise", "DisentangledReset", "Every", "Exchange", "GaussianMixture",
    "InitialNoise", "Intervention", "KMeans", "KMeansPlusPlus", "KMedoids", "KaimingNoise", "Layer",
    "NativeRecluster", "NoisyRecluster", "Peers", "Perturb", "RandomCenters", "Recluster",
    "RecomputeCenters", "ResetMomentum", "Shrink", "SoftReset", "SplitMerge", "Step", "Target",
    "WhenSettled"]
