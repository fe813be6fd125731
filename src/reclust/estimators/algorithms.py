"""The published algorithms: DEC, IDEC and DCN."""

from ..objectives import DCNObjective, DECObjective, IDECObjective
from .deep_clustering import DeepClustering


class DEC(DeepClustering):
    """Deep embedded clustering: sharpen soft assignments, without reconstruction while clustering.

    Parameters
    ----------
    n_clusters, **options
        As in `DeepClustering`, which also lists the attributes.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from reclust import DEC
    >>> X, _ = make_blobs(60, 5, random_state=0)
    >>> model = DEC(3, pretrain_epochs=1, epochs=2, intervention=None, random_state=0).fit(X)
    >>> model.labels_.shape
    (60,)
    """

    _default_objective = DECObjective()


class IDEC(DeepClustering):
    """Improved deep embedded clustering: DEC plus reconstruction. A good first choice.

    Parameters
    ----------
    n_clusters, **options
        As in `DeepClustering`, which also lists the attributes.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from reclust import IDEC
    >>> X, _ = make_blobs(60, 5, random_state=0)
    >>> model = IDEC(3, pretrain_epochs=1, epochs=2, intervention=None, random_state=0).fit(X)
    >>> model.predict(X[:5]).shape
    (5,)
    """

    _default_objective = IDECObjective()


class DCN(DeepClustering):
    """Deep clustering network: reconstruction plus the distance to the assigned center.

    Parameters
    ----------
    n_clusters, **options
        As in `DeepClustering`, which also lists the attributes.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from reclust import DCN
    >>> X, _ = make_blobs(60, 5, random_state=0)
    >>> model = DCN(3, pretrain_epochs=1, epochs=2, intervention=None, random_state=0).fit(X)
    >>> model.predict_proba(X).shape[0]
    60
    """

    _default_objective = DCNObjective()
