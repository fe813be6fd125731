"""The card of a fitted model: its settings, data, clusters, doubts and versions in a few lines."""

import html
from typing import Any

import numpy as np

from .. import metrics
from ..data.errors import listed
from .versus_kmeans import FittedModel

VERSIONS = ("reclust", "torch", "numpy", "python", "device")


def card(model: FittedModel) -> dict[str, Any]:
    """Collect facts as plain values; `features` are names or, without any, their number."""
    preparation, encoder, result = model.preparation_, model.preparation_.encoder, model.result_
    names = [feature.name for feature in encoder.features] if encoder else list(
        getattr(model, "feature_names_in_", []))
    agreement = getattr(model, "agreement_", None)
    return {
        "model": " ".join(repr(model).split()), "samples": len(model.labels_),
        "features": names or list(preparation.image_shape or [model.n_features_in_]),
        "clusters": model.n_clusters_, "sizes": np.bincount(model.labels_).tolist(),
        **({} if agreement is None else {"agreement": round(agreement, 3)}),
        "agreement with k-means": round(metrics.ari(model.labels_, model.baseline_.labels_), 3),
        "seconds": round(sum(result.seconds.values()), 1), "warnings": model.warnings_,
        "versions": [f"{name} {result.provenance[name]}" for name in VERSIONS
                     if name in result.provenance]}


def as_lines(model: FittedModel) -> list[tuple[str, str]]:
    facts = card(model) | {"warnings": " ".join(model.warnings_) or "none"}  # not cut
    return [(name, listed(map(str, entry)) if isinstance(entry, list) else str(entry))
            for name, entry in facts.items()]


def as_html(model: FittedModel) -> str:
    rows = "".join(f"<tr><th>{name}</th><td style='text-align: left'>{html.escape(text)}</td></tr>"
                   for name, text in as_lines(model))
    return f"<table>{rows}</table>"
