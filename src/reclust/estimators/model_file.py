"""Fitted estimators as files: safetensors and JSON in one file, no pickle."""

import math
import operator
import os
from numbers import Integral
from typing import Any

import numpy as np
import torch

from ..data.lens import Lens
from ..data.preparation import Preparation
from ..data.scaling import Scaling
from ..ensemble.granularity import KSuggestion
from ..ensemble.members import Member
from ..ensemble.outliers import ClusterShapes
from ..report.drift import Reference
from ..training.result import Result, with_prefix
from ..utils import tensor_file
from ..utils.values import from_json, storable, to_json
from .baseline import Baseline

# Fitted attributes that are arrays, and their names in files since version 0.1.
ARRAYS = {"labels_": "labels", "nonempty_clusters_": "living",
          "consensus_labels_": "consensus_labels", "probabilities_": "probabilities",
          "tree_": "tree", "leaves_": "leaves", "outlier_score_": "outlier_score",
          "sample_embedding_": "sample_embedding"}
GROUPS: dict[str, Any] = {"reference": Reference, "shapes": ClusterShapes}
SCALINGS = [f"{which}.{name}" for which in ("first", "second") for name in ("shift", "scale")]


def write_model(path: str | os.PathLike[str], estimator: str, parameters: dict[str, Any],
                fitted: dict[str, Any]) -> None:
    result, preparation, baseline = fitted["result_"], fitted["preparation_"], fitted["baseline_"]
    to_json(result.settings[fitted["best_replica_"]].objective)  # raises for custom classes
    if not isinstance(parameters.get("random_state", 0), Integral):
        parameters = {**parameters, "random_state": None}
    (header, tensors), ids, found = result.pack(), fitted["ids_"], fitted["suggestion_"]
    if found is not None:
        parameters = {**parameters, "n_clusters": "auto"}
        chance = None if math.isnan(found.chance) else found.chance
        header["suggestion"] = [list(found.ks), found.agreement.tolist(), chance, found.n_samples]
    header |= {
        "estimator": estimator,
        "parameters": to_json({name: storable(part) for name, part in parameters.items()}),
        "n_features_in": fitted["n_features_in_"],
        "feature_names_in": list(fitted.get("feature_names_in_", [])),
        "ids": None if ids is None else ids.tolist(), "best_replica": fitted["best_replica_"],
        "scores": [None if math.isnan(replica.score) else replica.score
                   for replica in fitted["replicas_"]],
        "image_shape": preparation.image_shape, "lens": to_json(preparation.lens),
        "encoder": to_json(preparation.encoder), "baseline_inertia": baseline.inertia_,
        "warnings": fitted["warnings_"]}
    arrays = {f"fitted/{stored}": fitted[name] for name, stored in ARRAYS.items() if name in fitted}
    arrays |= {"fitted/baseline_labels": baseline.labels_,
               "fitted/baseline_centers": baseline.cluster_centers_,
               "fitted/baseline_weights": baseline.weights_}
    for group in GROUPS:
        if f"{group}_" in fitted:
            arrays |= {f"{group}/{name}": array
                       for name, array in vars(fitted[f"{group}_"]).items()}
    if "members_" in fitted:
        members = fitted["members_"]
        header["members"] = [[member.method, member.view, member.seed, member.score]
                             for member in members]
        arrays["fitted/members"] = np.stack([member.labels for member in members])
    arrays |= {f"scaling/{name}": operator.attrgetter(name)(preparation) for name in SCALINGS}
    tensors |= {name: torch.from_numpy(np.ascontiguousarray(array).copy())
                for name, array in arrays.items()}
    tensor_file.write(path, "model", header, tensors)


def read_model(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the class name, the parameters and the fitted attributes, with `scores`."""
    header, tensors = tensor_file.read(path, "model")
    with tensor_file.explain_errors(path):
        arrays = {name: tensor.numpy() for name, tensor in with_prefix(tensors, "fitted").items()}
        scalings = [tensors[f"scaling/{name}"].numpy() for name in SCALINGS]
        shape = None if header["image_shape"] is None else tuple(header["image_shape"])
        # Early files of version 0.1 have neither a lens nor ids.
        lens = from_json(header["lens"]) if "lens" in header else Lens()
        if lens.shape(*shape or (1, 1, 3)) != tuple(header["sample_shape"]) and shape:
            raise ValueError(f"its network is not made for images {shape}")
        centers, ids = arrays["baseline_centers"], header.get("ids")
        fitted: dict[str, Any] = {name: arrays[stored] for name, stored in ARRAYS.items()
                                  if stored in arrays}
        fitted |= {
            "result_": Result.unpack(header, tensors),
            "best_replica_": operator.index(header["best_replica"]),
            "scores": [math.nan if score is None else score for score in header["scores"]],
            "preparation_": Preparation(shape, Scaling(*scalings[:2]), Scaling(*scalings[2:]),
                                        lens, from_json(header.get("encoder"))),
            "baseline_": Baseline(arrays["baseline_labels"], centers, header["baseline_inertia"],
                                  arrays.get("baseline_weights", np.ones_like(centers[0]))),
            "n_features_in_": header["n_features_in"], "suggestion_": None,
            "warnings_": [*map(str, header.get("warnings", []))],
            "ids_": ids and np.array(ids, None if {*map(type, ids)} <= {int, float} else object)}
        for group, kind in GROUPS.items():
            if stored := with_prefix(tensors, group):  # not in files of version 0.1
                fitted[f"{group}_"] = kind(**{name: x.numpy() for name, x in stored.items()})
        if header.get("suggestion"):
            ks, agreement, chance, n = header["suggestion"]
            fitted["suggestion_"] = KSuggestion(
                tuple(ks), np.array(agreement, float), math.nan if chance is None else chance, n)
        if "members" in header:
            fitted["members_"] = [Member(method, view, seed, labels, float(score))
                                  for (method, view, seed, score), labels
                                  in zip(header["members"], arrays["members"], strict=True)]
        if header["feature_names_in"]:
            fitted["feature_names_in_"] = np.array(header["feature_names_in"], dtype=object)
        return header["estimator"], from_json(header["parameters"]), fitted
