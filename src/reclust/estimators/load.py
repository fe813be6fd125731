"""Loading fitted estimators from files."""

import json
import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import is_valid_linkage

from ..ensemble.tree import MAX_PARTS, cut
from ..report.card import card
from ..representations import Representation
from ..utils import tensor_file
from ..utils.values import NotStored
from . import algorithms, reclust, self_labeling  # noqa: F401  (registers the estimators)
from .fitted import FittedClustering
from .model_file import read_model


def load(path: str | os.PathLike[str], *, representation: Representation | None = None,
         embed: Any = None) -> Any:
    """Load a model that `save` or the command `reclust fit` wrote.

    Predictions are the same on every machine. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path
        File that ``model.save(path)`` wrote, or the output folder of ``reclust fit``.
    representation : Representation, optional
        Needed if the model was fitted with custom modules, which cannot be saved: pass the same
        representation again.
    embed : function or model, optional
        Needed to predict texts, as in `Reclust.fit`.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_blobs
    >>> from reclust import IDEC, load
    >>> X, _ = make_blobs(40, 5, centers=2, random_state=0)
    >>> model = IDEC(2, pretrain_epochs=1, epochs=2, intervention=None, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.reclust")
    ...     loaded = load(f"{folder}/model.reclust")
    >>> bool((loaded.predict(X) == model.labels_).all())
    True
    """
    if os.path.isdir(path):
        path = os.path.join(path, "model.reclust")
    estimator, parameters, fitted = read_model(path)
    with tensor_file.explain_errors(path):
        if estimator not in FittedClustering.subclasses:
            raise ValueError(f"unknown estimator {estimator!r}; import its module first.")
        result = fitted["result_"]
        if representation is not None:
            result.settings = [replace(item, representation=representation)
                               for item in result.settings]
            if "representation" in parameters:
                parameters["representation"] = representation
        custom = result.settings[0].representation
        if isinstance(custom, NotStored):
            raise ValueError(f"it was fitted with a custom {custom.what}, which cannot be saved; "
                             "pass the same as load(path, representation=…).")
        fitted["embed_"] = embed
        model = FittedClustering.subclasses[estimator](**parameters).restore(fitted)
        if not _fits_together(model):
            raise ValueError("its parts do not fit together")
        json.dumps(card(model))  # raises for values that no fit has
        return model


def _fits_together(model: FittedClustering) -> bool:
    """Tell whether the parts of a model have shapes and values that belong together."""
    labels, k, preparation = model.labels_, model.n_clusters_, model.preparation_
    shape, width = model.result_.sample_shape, math.prod(model.result_.sample_shape)
    fits = (0 <= labels.min() <= labels.max() < k and len(model.candidates_) > 0
            and model.baseline_.labels_.shape == labels.shape
            and (preparation.encoder is None or len(preparation.encoder.features) == width))
    if not fits or not {"tree_", "reference_", "shapes_"} & {*vars(model)}:  # of version 0.1
        return fits
    tree, reference = model.tree_, model.reference_
    x = preparation.network_input(np.zeros((1, *(preparation.image_shape or shape))))
    return (k <= len(tree) + 1 <= MAX_PARTS * k and (not len(tree) or is_valid_linkage(tree))
            and cut(tree, 1)[model.leaves_].shape == labels.shape
            and reference.sizes.shape == (k,) and reference.means.shape == (k, width)
            and model.shapes_.center.shape == (width,) and x.shape == (1, *shape)
            and model.shapes_.score(x.flatten(1)).shape == (1,))
