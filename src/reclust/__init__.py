"""Deep clustering that does not get stuck."""

from .checkpoint import Checkpoint
from .choosing import KSuggestion, suggest_k
from .estimators import DCN, DEC, IDEC, DeepClustering
from .exceptions import ReclustWarning, StopTraining, TrainingFailed
from .interventions import (
    BRB,
    Every,
    InitialNoise,
    Intervention,
    KaimingNoise,
    Recluster,
    ResetMomentum,
    SoftReset,
    Step,
    Target,
)
from .kmeans import KMeans
from .monitors import Evaluation, Monitor, Progress, Snapshot
from .objectives import DCNObjective, DECObjective, IDECObjective, Objective
from .replicas import Replicas
from .representations import Autoencoder, ConvAutoencoder, Embeddings, OwnAutoencoder, OwnSimCLR, Representation, ResNet, SimCLR
from .result import Curve, Result
from .saving import load
from .selflabel import SelfLabel, self_label
from .settings import Execution, Schedule, Settings
from .third_stage import SelfLabeling
from .training import train
from .values import value
from .version import __version__

__all__ = [
    "Autoencoder",
    "BRB",
    "Checkpoint",
    "ConvAutoencoder",
    "Curve",
    "DCN",
    "DCNObjective",
    "DEC",
    "DECObjective",
    "DeepClustering",
    "Embeddings",
    "Evaluation",
    "Every",
    "Execution",
    "IDEC",
    "IDECObjective",
    "InitialNoise",
    "Intervention",
    "KMeans",
    "KSuggestion",
    "KaimingNoise",
    "Monitor",
    "Objective",
    "OwnAutoencoder",
    "OwnSimCLR",
    "Progress",
    "ReclustWarning",
    "Recluster",
    "Replicas",
    "Representation",
    "ResNet",
    "ResetMomentum",
    "Result",
    "Schedule",
    "SelfLabel",
    "SelfLabeling",
    "Settings",
    "SimCLR",
    "Snapshot",
    "SoftReset",
    "Step",
    "StopTraining",
    "Target",
    "TrainingFailed",
    "__version__",
    "load",
    "self_label",
    "suggest_k",
    "train",
    "value",
]
