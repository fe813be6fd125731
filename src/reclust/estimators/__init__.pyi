from . import presets as presets
from .deep_clustering import DCN as DCN, DEC as DEC, IDEC as IDEC, DeepClustering as DeepClustering
from .self_labeling import SelfLabeling as SelfLabeling
