from . import presets as presets
from .algorithms import DCN as DCN, DEC as DEC, IDEC as IDEC
from .deep_clustering import DeepClustering as DeepClustering
from .self_labeling import SelfLabeling as SelfLabeling
