from . import (
    data as data,
    distributed as distributed,
    draws as draws,
    geometry as geometry,
    metrics as metrics,
    scanpy as scanpy,
    studies as studies,
)
from .data.features import features as features
from .ensemble.granularity import KSuggestion as KSuggestion
from .estimators import presets as presets
from .estimators.algorithms import DCN as DCN, DEC as DEC, IDEC as IDEC
from .estimators.deep_clustering import DeepClustering as DeepClustering
from .estimators.load import load as load
from .estimators.reclust import Reclust as Reclust
from .estimators.self_labeling import SelfLabeling as SelfLabeling
from .estimators.suggest_k import suggest_k as suggest_k
from .interventions import (
    BRB as BRB,
    Every as Every,
    InitialNoise as InitialNoise,
    Intervention as Intervention,
    KaimingNoise as KaimingNoise,
    Recluster as Recluster,
    ResetMomentum as ResetMomentum,
    SoftReset as SoftReset,
    Step as Step,
    Target as Target,
)
from .interventions.reclustering.kmeans import KMeans as KMeans
from .objectives import (
    DCNObjective as DCNObjective,
    DECObjective as DECObjective,
    IDECObjective as IDECObjective,
    Objective as Objective,
    SCANObjective as SCANObjective,
    SeCuObjective as SeCuObjective,
)
from .representations import (
    Autoencoder as Autoencoder,
    ConvAutoencoder as ConvAutoencoder,
    Embeddings as Embeddings,
    Neighbors as Neighbors,
    OwnAutoencoder as OwnAutoencoder,
    OwnSimCLR as OwnSimCLR,
    Representation as Representation,
    ResNet as ResNet,
    SimCLR as SimCLR,
)
from .training.checkpoint import Checkpoint as Checkpoint
from .training.engine.replicas import Replicas as Replicas
from .training.history import Curve as Curve
from .training.monitors.base import (
    Monitor as Monitor,
    Snapshot as Snapshot,
)
from .training.monitors.evaluation import Evaluation as Evaluation
from .training.monitors.progress import Progress as Progress
from .training.result import Result as Result
from .training.self_label import (
    SelfLabel as SelfLabel,
    self_label as self_label,
)
from .training.settings import (
    Execution as Execution,
    Schedule as Schedule,
    Settings as Settings,
)
from .training.train import train as train
from .utils.exceptions import (
    ReclustWarning as ReclustWarning,
    StopTraining as StopTraining,
    TrainingFailed as TrainingFailed,
)
from .utils.values import value as value

__version__: str
