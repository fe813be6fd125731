"""Fitted estimators as files: safetensors and JSON in one file, no pickle."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import torch

from ..data.lens import Lens
from ..data.preparation import Preparation
from ..data.scaling import Scaling
from ..representations import Representation
from ..training.result import Model, Result, group_of
from ..utils import tensor_file
from ..utils.device import choose_device
from ..utils.values import NotStored, from_json, storable, to_json
from . import deep_clustering, self_labeling
from .baseline import Baseline
from .fitted import FittedClustering

ESTIMATORS = {
    kind.__name__: kind
    for kind in (deep_clustering.DeepClustering, deep_clustering.DEC, deep_clustering.IDEC, deep_clustering.DCN, self_labeling.SelfLabeling)
}

TRIED = 2**22
"""Numbers in a sample up to which a loaded model is tried on one."""


def save_estimator(model: FittedClustering, path: str | os.PathLike[str]) -> None:
    if ESTIMATORS.get(type(model).__name__) is not type(model):
        raise TypeError(f"Only {', '.join(ESTIMATORS)} can be saved this way, not {type(model).__name__}; "
                        "its result_ can, with result_.save(path).")
    to_json(model.result_.settings[model.best_replica_].objective)  # a model is of no use without: raises, with a remedy
    header, tensors = model.result_.pack()
    parameters = model.get_params(deep=False)
    if not isinstance(parameters.get("random_state", 0), Integral):
        parameters["random_state"] = None  # a generator's state is of no use to a fitted model
    parameters = {name: storable(given) for name, given in parameters.items()}
    header |= {
        "estimator": type(model).__name__,
        "parameters": to_json(parameters),
        "n_features_in": model.n_features_in_,
        "feature_names_in": list(getattr(model, "feature_names_in_", [])),
        "ids": None if model.ids_ is None else model.ids_.tolist(),
        "best_replica": model.best_replica_,
        "scores": [None if math.isnan(replica.score) else replica.score for replica in model.replicas_],  # JSON has no NaN
        "image_shape": model._preparation.image_shape,
        "lens": to_json(model._preparation.lens),
        "baseline_inertia": model.baseline_.inertia_,
    }
    arrays = {
        "fitted/labels": model.labels_, "fitted/living": model._living,
        **({"fitted/consensus_labels": model.consensus_labels_} if "consensus_labels_" in vars(model) else {}),
        "fitted/baseline_labels": model.baseline_.labels_, "fitted/baseline_centers": model.baseline_.cluster_centers_,
        **{f"scaling/{which}.{name}": getattr(getattr(model._preparation, which), name)
           for which in ("first", "second") for name in ("shift", "scale")},
    }
    tensors |= {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    tensor_file.write(path, "model", header, tensors)


def load(path: str | os.PathLike[str], *, representation: Representation | None = None) -> Any:
    """A model that `model.save(path)` wrote, or of the folder that `reclust fit -o` did; its predictions are the same on every
    machine.

    representation: needed where the model was fitted with modules of one's own, which no file can hold: the same again.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "model.reclust")
    header, tensors = tensor_file.read(path, "model")
    with tensor_file.understood(path):
        model = _unpacked(path, header, tensors, representation)
        _check(model)
    return model


def _unpacked(path: str | os.PathLike[str], header: dict[str, Any], tensors: dict[str, torch.Tensor],
              representation: Representation | None) -> FittedClustering:
    if header["estimator"] not in ESTIMATORS:
        raise ValueError(f"{path} holds an unknown estimator {header['estimator']!r}.")
    model = ESTIMATORS[header["estimator"]](**from_json(header["parameters"]))
    result = Result.unpack(header, tensors)
    if representation is not None:
        if "representation" in model.get_params(deep=False):
            model.set_params(representation=representation)
        result.settings = [replace(settings, representation=representation) for settings in result.settings]
    elif isinstance(result.settings[0].representation, NotStored):
        own = result.settings[0].representation.what
        raise ValueError(f"{path} was fitted with {own}, its user's own: pass the same as load(path, representation=…).")
    scalings, fitted = group_of(tensors, "scaling"), {name: t.numpy() for name, t in group_of(tensors, "fitted").items()}
    first, second = (Scaling(scalings[f"{which}.shift"].numpy(), scalings[f"{which}.scale"].numpy())
                     for which in ("first", "second"))
    shape = header["image_shape"]
    lens = from_json(header["lens"]) if "lens" in header else Lens()  # not in the first files of this format
    if not isinstance(lens, Lens):
        raise ValueError(f"{path} holds {lens!r} in place of a lens.")
    preparation = Preparation(None if shape is None else tuple(shape), first, second, lens)
    model.n_features_in_ = header["n_features_in"]
    if header["feature_names_in"]:
        model.feature_names_in_ = np.array(header["feature_names_in"], dtype=object)
    model.ids_ = None if header.get("ids") is None else np.array(header["ids"])
    scores = [math.nan if score is None else score for score in header["scores"]]
    model._adopt(result, preparation, scores, header["best_replica"])
    _check_living(fitted["living"], result.n_clusters)
    model._keep_living(fitted["living"])
    model.labels_ = fitted["labels"]
    if "consensus_labels" in fitted:
        model.consensus_labels_ = fitted["consensus_labels"]
    model.baseline_ = Baseline(fitted["baseline_labels"], fitted["baseline_centers"], header["baseline_inertia"])
    return model


def _check_living(living: np.ndarray, k: int) -> None:
    """Numbers that could pick centres in another way, such as truth values or negative ones, are no names of clusters."""
    whole = living.ndim == 1 and living.dtype.kind == "i" and len(living) > 0
    if not whole or not (np.diff(living) > 0).all() or living[0] < 0 or living[-1] >= k:
        raise ValueError(f"its clusters with samples are not whole numbers below {k}, each once and in order.")


def _check(model: FittedClustering) -> None:
    """That the parts of a model go together, which else would surprise whoever predicts, and that it can work here."""
    try:
        choose_device(model.device)
    except ValueError:  # it was fitted on another machine
        model.device = "auto"
    labels, preparation = model.labels_, model._preparation
    expected = math.prod(preparation.image_shape or model.result_.sample_shape)
    if model.n_features_in_ != expected:
        raise ValueError(f"it takes {expected} numbers a sample, but it was fitted on {model.n_features_in_!r}.")
    seen = preparation.sample_shape or model.result_.sample_shape
    if math.prod(seen) != math.prod(model.result_.sample_shape):
        raise ValueError(f"its network takes samples of shape {model.result_.sample_shape}, but would be given {seen}.")
    given = labels.ndim == 1 and labels.dtype.kind == "i" and len(labels) > 0
    if not given or not ((labels >= 0) & (labels < model.n_clusters_)).all():
        raise ValueError(f"its labels are not whole numbers below its {model.n_clusters_} clusters.")
    if max(expected, math.prod(seen)) <= TRIED:
        model._over(np.zeros((1, expected)), Model.assign)
