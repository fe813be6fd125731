"""Deep clustering that does not get stuck."""

from typing import TYPE_CHECKING

from .lazy import lazily
from .version import __version__

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .choosing import KSuggestion, suggest_k
    from .estimators import DCN, DEC, IDEC, DeepClustering
    from .exceptions import ReclustWarning, StopTraining, TrainingFailed
    from .history import Curve
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
    from .representations import (
        Autoencoder,
        ConvAutoencoder,
        Embeddings,
        OwnAutoencoder,
        OwnSimCLR,
        Representation,
        ResNet,
        SimCLR,
    )
    from .result import Result
    from .saving import load
    from .selflabel import SelfLabel, self_label
    from .settings import Execution, Schedule, Settings
    from .third_stage import SelfLabeling
    from .training import train
    from .values import value
else:
    __getattr__, __dir__ = lazily(__name__, {
        "checkpoint": "Checkpoint",
        "choosing": "KSuggestion suggest_k",
        "estimators": "DCN DEC IDEC DeepClustering",
        "exceptions": "ReclustWarning StopTraining TrainingFailed",
        "history": "Curve",
        "interventions": "BRB Every InitialNoise Intervention KaimingNoise Recluster ResetMomentum SoftReset Step Target",
        "kmeans": "KMeans",
        "monitors": "Evaluation Monitor Progress Snapshot",
        "objectives": "DCNObjective DECObjective IDECObjective Objective",
        "replicas": "Replicas",
        "representations": "Autoencoder ConvAutoencoder Embeddings OwnAutoencoder OwnSimCLR Representation ResNet SimCLR",
        "result": "Result",
        "saving": "load",
        "selflabel": "SelfLabel self_label",
        "settings": "Execution Schedule Settings",
        "third_stage": "SelfLabeling",
        "training": "train",
        "values": "value",
    })

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
