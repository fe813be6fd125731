"""BRB, breaking the reclustering barrier: a combination of three steps."""

from collections.abc import Mapping
from dataclasses import field

from ..utils.values import Shorthand, integer, value
from .reclustering.kmeans import KMeans
from .reclustering.recluster import Method, Recluster
from .soft_reset import ResetMomentum, SoftReset
from .steps import Every, Step


@value
class BRB(Shorthand, Every):
    """Soft reset of the encoder, reclustering, and reset of the centers' momentum.

    Parameters
    ----------
    interval : int, default=20
        Number of epochs between firings.
    keep : float or mapping of str to float, default=0.8
        Share of the weights that the soft reset keeps, see `SoftReset`.
    method : callable, default=KMeans()
        Clustering method that finds the new centers, see `Recluster`.

    Examples
    --------
    >>> from reclust import BRB, Every, KMeans, Recluster, ResetMomentum, SoftReset
    >>> BRB(20, 0.8) == Every(20, (SoftReset(0.8), Recluster(KMeans()), ResetMomentum()))
    True
    """

    interval: int = integer(default=20, least=1)
    steps: tuple[Step, ...] = field(init=False, repr=False)
    keep: float | Mapping[str, float] = 0.8
    method: Method = KMeans()

    def __post_init__(self) -> None:
        steps = (SoftReset(self.keep), Recluster(self.method), ResetMomentum())
        object.__setattr__(self, "steps", steps)

    def expand(self) -> Every:
        return Every(self.interval, self.steps)
