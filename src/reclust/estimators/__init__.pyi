from . import presets as presets
from .algorithms import DCN as DCN, DEC as DEC, IDEC as IDEC
from .deep_clustering import DeepClustering as DeepClustering
from .reclust import Reclust as Reclust
from .self_labeling import SelfLabeling as SelfLabeling
