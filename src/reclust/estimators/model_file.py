"""Fitted estimators as files: safetensors and JSON in one file, no pickle."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch

from ..data.lens import Lens
from ..data.preparation import Preparation
from ..data.scaling import Scaling
from ..training.result import Result, group_of
from ..utils import tensor_file
from ..utils.values import from_json, storable, to_json
from .baseline import Baseline


@dataclass(frozen=True)
class FittedState:
    """Everything a fitted estimator needs to predict, to write a report and to be saved again."""

    estimator: str
    parameters: dict[str, Any]
    n_features_in: int
    feature_names_in: list[str]
    ids: np.ndarray | None
    preparation: Preparation
    result: Result
    best_replica: int
    scores: list[float]
    nonempty: np.ndarray
    labels: np.ndarray
    consensus_labels: np.ndarray | None
    baseline: Baseline


def write_model(path: str | os.PathLike[str], state: FittedState) -> None:
    to_json(state.result.settings[state.best_replica].objective)  # raises for custom classes
    header, tensors = state.result.pack()
    parameters = dict(state.parameters)
    if not isinstance(parameters.get("random_state", 0), Integral):
        parameters["random_state"] = None
    header |= {
        "estimator": state.estimator,
        "parameters": to_json({name: storable(given) for name, given in parameters.items()}),
        "n_features_in": state.n_features_in,
        "feature_names_in": state.feature_names_in,
        "ids": None if state.ids is None else state.ids.tolist(),
        "best_replica": state.best_replica,
        "scores": [None if math.isnan(score) else score for score in state.scores],
        "image_shape": state.preparation.image_shape,
        "lens": to_json(state.preparation.lens),
        "baseline_inertia": state.baseline.inertia_,
    }
    arrays = {
        "fitted/labels": state.labels,
        "fitted/living": state.nonempty,
        "fitted/consensus_labels": state.consensus_labels,
        "fitted/baseline_labels": state.baseline.labels_,
        "fitted/baseline_centers": state.baseline.cluster_centers_,
        "scaling/first.shift": state.preparation.first.shift,
        "scaling/first.scale": state.preparation.first.scale,
        "scaling/second.shift": state.preparation.second.shift,
        "scaling/second.scale": state.preparation.second.scale,
    }
    tensors |= {name: torch.from_numpy(np.ascontiguousarray(array).copy())
                for name, array in arrays.items() if array is not None}
    tensor_file.write(path, "model", header, tensors)


def read_model(path: str | os.PathLike[str]) -> FittedState:
    header, tensors = tensor_file.read(path, "model")
    with tensor_file.explain_errors(path):
        fitted = {name: tensor.numpy() for name, tensor in group_of(tensors, "fitted").items()}
        scaling = {name: tensor.numpy() for name, tensor in group_of(tensors, "scaling").items()}
        first, second = (Scaling(scaling[f"{which}.shift"], scaling[f"{which}.scale"])
                         for which in ("first", "second"))
        shape = header["image_shape"]
        # Early files of version 0.1 have neither a lens nor ids.
        lens = from_json(header["lens"]) if "lens" in header else Lens()
        return FittedState(
            estimator=header["estimator"],
            parameters=from_json(header["parameters"]),
            n_features_in=header["n_features_in"],
            feature_names_in=header["feature_names_in"],
            ids=None if header.get("ids") is None else np.array(header["ids"]),
            preparation=Preparation(None if shape is None else tuple(shape), first, second, lens),
            result=Result.unpack(header, tensors),
            best_replica=header["best_replica"],
            scores=[math.nan if score is None else score for score in header["scores"]],
            nonempty=fitted["living"],
            labels=fitted["labels"],
            consensus_labels=fitted.get("consensus_labels"),
            baseline=Baseline(fitted["baseline_labels"], fitted["baseline_centers"],
                              header["baseline_inertia"]),
        )
