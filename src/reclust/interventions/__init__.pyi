from .adaptive import WhenSettled as WhenSettled
from .brb import BRB as BRB
from .controls import (
    DisentangledReset as DisentangledReset,
    NoisyRecluster as NoisyRecluster,
)
from .exchange import Exchange as Exchange
from .reclustering.kmeans import (
    KMeans as KMeans,
    KMeansPlusPlus as KMeansPlusPlus,
)
from .reclustering.medoids import KMedoids as KMedoids
from .reclustering.merging import MergedKMeans as MergedKMeans
from .reclustering.mixture import GaussianMixture as GaussianMixture
from .reclustering.recluster import (
    NativeRecluster as NativeRecluster,
    RandomCenters as RandomCenters,
    Recluster as Recluster,
    RecomputeCenters as RecomputeCenters,
)
from .soft_reset import (
    CurrentNoise as CurrentNoise,
    InitialNoise as InitialNoise,
    KaimingNoise as KaimingNoise,
    Perturb as Perturb,
    ResetMomentum as ResetMomentum,
    Shrink as Shrink,
    SoftReset as SoftReset,
)
from .split_merge import SplitMerge as SplitMerge
from .steps import (
    Every as Every,
    Intervention as Intervention,
    Step as Step,
)
from .target import (
    Layer as Layer,
    Peers as Peers,
    Target as Target,
)
