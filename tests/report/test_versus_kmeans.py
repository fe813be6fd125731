"""The comparison with k-means and its verdict."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support import blobs, small_settings

from reclust import IDEC, geometry, metrics
from reclust.data.augmentation.affine import Noise
from reclust.interventions import Every, Exchange, ResetMomentum
from reclust.report.versus_kmeans import MARGIN, SAME, KMeansComparison, compare, exchanged


def small(k=4, **changes):
    return IDEC(k, preset=small_settings(), random_state=0, device="cpu", **changes)


def comparison(**changes):
    given = {"agreement": 0.5, "views": (0.8, 0.8), "refits": (0.8, 0.8), "neighbors": (0.5, 0.5),
             "silhouettes_input": (0.1, 0.2), "silhouettes_embedding": (0.4, 0.1)}
    return KMeansComparison(**{**given, **changes})


@pytest.mark.parametrize(("changes", "kind"), [
    ({"agreement": SAME, "views": (0.1, 0.9)}, "same"), ({}, "unclear"), ({"views": (0.8 + 2 * MARGIN, 0.8)}, "deep"),
    ({"views": (0.8 + MARGIN / 2, 0.8)}, "unclear"), ({"refits": (0.5, 0.8)}, "k-means"), ({"refits": (None, 0.2)}, "unclear"),
    ({"views": (0.99, 0.2), "unfair": {"views": "why"}}, "unclear"), ({"refits": (0.2, 0.8), "unfair": {"views": "why"}}, "k-means"),
    ({"views": (0.9, 0.8), "refits": (0.2, 0.8)}, "unclear"), ({"silhouettes_embedding": (0.99, 0.0)}, "unclear"),
])
def test_the_verdict_follows_from_stability_alone(changes, kind):
    assert comparison(**changes).verdict[0] == kind


def test_measures_are_those_of_the_model():
    X, _ = blobs(n=60)
    model = small(n_init=2).fit(X)
    made = compare(model, X, np.arange(len(X)))
    assert made.agreement == pytest.approx(metrics.ari(model.labels_, model.baseline_.labels_))
    assert made.refits[0] == pytest.approx(metrics.ari(*(one.labels for one in model.replicas_)))
    z = torch.from_numpy(model.transform(X))
    assert made.silhouettes_embedding[0] == pytest.approx(float(geometry.squared_silhouette(z, torch.from_numpy(model.labels_)).mean()))
    assert all(-1 <= number <= 1 for pair in (made.views, made.neighbors, made.silhouettes_input) for number in pair)
    assert made.unfair == {}


@pytest.mark.parametrize(("replicas", "augment", "step"), [
    (1, None, Exchange()), (2, None, Exchange()), (1, Noise(), ResetMomentum()), (2, Noise(), Exchange()), (2, Noise(), ResetMomentum())])
def test_measures_that_training_aimed_at_do_not_count(replicas, augment, step):
    X, _ = blobs(n=60)
    model = small(n_init=replicas, augment=augment, intervention=Every(2, (step,))).fit(X)
    copied = replicas > 1 and isinstance(step, Exchange)
    made = compare(model, X, np.arange(len(X)))
    assert ("views" in made.unfair, "refits" in made.unfair) == (copied or augment is not None, copied)
    assert (made.refits[0] is None) == (copied or replicas == 1)
    different = replace(made, agreement=0.0)
    assert different.verdict[0] == "unclear" or not (copied or augment is not None and replicas == 1)
    assert ("not counted" in made.rows()[0]["about"], "copied" in made.rows()[1]["about"]) == ("views" in made.unfair, copied)
    assert exchanged(model) == copied
