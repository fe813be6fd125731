"""Outcome of a trained group: scores, curves, arrays and provenance, ready to be stored."""

import hashlib
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .. import metrics
from ..data.inputs import as_inputs
from ..training.fingerprint import code_of
from ..training.history import Curve, History
from ..training.result import Result
from .measures import shown_rows
from .protocols import Sample
from .store.store import Outcome
from .study import Group

COMMIT = "RECLUST_COMMIT"  # environment variable, for source that is not a git checkout


def make_outcome(group: Group, result: Result, start: Result | None, sample: Sample,
                 label_free: dict[str, np.ndarray]) -> Outcome:
    assert result.labels is not None
    arrays = {"labels": result.labels, "centers": result.state["centers"].numpy()}
    if "embeddings" in group.measures:
        shown = sample.classes[shown_rows(len(sample.classes))]
        arrays["shown_classes"] = np.broadcast_to(shown, (len(result), len(shown)))
    scores = score_labels(sample.classes, result.labels)
    if sample.held_out is not None:
        inputs = as_inputs(sample.held_out.inputs)
        arrays["test_labels"] = np.stack([result.model(replica).predict(inputs)
                                          for replica in range(len(result))])
        on_training_part = {f"train_{name}": values for name, values in scores.items()}
        scores = score_labels(sample.held_out.classes, arrays["test_labels"]) | on_training_part
    seconds, history = dict(result.seconds), dict(result.history)
    if start is not None:
        share = len(result) / len(start)
        seconds |= {part: spent * share for part, spent in start.seconds.items()}
        rows = [start.seeds.index(seed) for seed in result.seeds]
        history |= {phase: {name: Curve(curve.epochs, curve.values[:, rows])
                            for name, curve in curves.items()}
                    for phase, curves in start.history.items()}
    failed = {replica: f"The loss stopped being a number in epoch {epoch} of {phase}."
              for replica, (phase, epoch) in result.failed.items()}
    return Outcome(
        group=group.key, runs=[run.key for run in group.runs], settings=group.settings,
        scores=scores | label_free, history=thin_losses(history, group.evaluate_every),
        arrays=arrays, seconds=seconds, failed=failed,
        provenance={**result.provenance, **_provenance(group, sample)})


def score_labels(classes: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Compute acc, nmi and ari, (r,) each, of labels (r, n)."""
    scored = [metrics.scores(classes, row) for row in labels]
    names = {"acc": "accuracy", "nmi": "nmi", "ari": "ari"}
    return {short: np.array([scores[name] for scores in scored]) for short, name in names.items()}


def thin_losses(history: History, every: int) -> History:
    """Keep losses at every few epochs, the first and last one, and where anything was evaluated."""
    thinned: History = {}
    for phase, curves in history.items():
        epochs = curves["loss"].epochs.tolist() if "loss" in curves else []
        chosen = {*epochs[:1], *epochs[-1:], *(e for e in epochs if (e + 1) % every == 0)}
        chosen |= set(curves["accuracy"].epochs.tolist()) if "accuracy" in curves else set()
        thinned[phase] = dict(curves)
        for name in filter(lambda name: name.endswith("loss"), curves):
            rows = np.isin(curves[name].epochs, list(chosen))
            thinned[phase][name] = Curve(curves[name].epochs[rows], curves[name].values[rows])
    return thinned


def _provenance(group: Group, sample: Sample) -> dict[str, Any]:
    n, custom = len(sample.classes), code_of(group)
    samples = np.ascontiguousarray(sample.inputs.samples[:: max(1, n // 1000)])
    checksum = hashlib.sha256(samples.tobytes()).hexdigest()
    return {"commit": commit(), "system": platform.platform(), "replicas": len(group.seeds),
            **versions("scipy", "scikit-learn"), **({"own parts": custom} if custom else {}),
            "data": {"name": group.dataset, "samples": n, "sha256": checksum}}


def commit() -> str | None:
    """Return the commit of the running source, marked if it has changes; None without git."""
    if COMMIT in os.environ:
        return os.environ[COMMIT]
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, cwd=Path(__file__).parent, text=True, capture_output=True,
                              timeout=10, check=True).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def versions(*packages: str) -> dict[str, str | None]:
    installed = {package: list(metadata.distributions(name=package)) for package in packages}
    return {package: copies[0].version if copies else None for package, copies in installed.items()}
