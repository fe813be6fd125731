"""The published algorithms: DEC, IDEC and DCN."""

from ..objectives import DCNObjective, DECObjective, IDECObjective
from .deep_clustering import DeepClustering


class DEC(DeepClustering):
    """Deep embedded clustering: sharpen soft assignments, without reconstruction while clustering.

    Parameters and attributes are those of `DeepClustering`.

    Examples
    --------
    >>> from reclust import DEC
    >>> X = [[0.0, 1.0], [0.1, 1.0], [5.0, 2.0], [5.1, 2.0]]
    >>> DEC(2, pretrain_epochs=1, epochs=2, intervention=None, random_state=0).fit(X).labels_.shape
    (4,)
    """

    _default_objective = DECObjective()


class IDEC(DeepClustering):
    """Improved deep embedded clustering: DEC plus reconstruction. A good first choice.

    Parameters and attributes are those of `DeepClustering`.

    Examples
    --------
    >>> from reclust import IDEC
    >>> X = [[0.0, 1.0], [0.1, 1.0], [5.0, 2.0], [5.1, 2.0]]
    >>> IDEC(2, pretrain_epochs=1, epochs=2, intervention=None, random_state=0).fit(X).labels_.shape
    (4,)
    """

    _default_objective = IDECObjective()


class DCN(DeepClustering):
    """Deep clustering network: reconstruction plus the distance to the assigned center.

    Parameters and attributes are those of `DeepClustering`.

    Examples
    --------
    >>> from reclust import DCN
    >>> X = [[0.0, 1.0], [0.1, 1.0], [5.0, 2.0], [5.1, 2.0]]
    >>> DCN(2, pretrain_epochs=1, epochs=2, intervention=None, random_state=0).fit(X).labels_.shape
    (4,)
    """

    _default_objective = DCNObjective()
