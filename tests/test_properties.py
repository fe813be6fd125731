"""Laws that hold for any valid settings on any finite data."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from reclust import BRB, DCN, DEC, IDEC, Autoencoder, KMeans, ReclustWarning

SCALES = (1e-6, 1.0, 1e6)


@st.composite
def problems(draw, rows):
    """A model and data that it may be fitted on."""
    n, features = draw(st.integers(2, rows)), draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, features)) * rng.choice(SCALES, size=features) + rng.choice((0.0, 1e3), size=features)
    shape = draw(st.sampled_from(["any", "duplicates", "constant features", "integers", "groups", "all equal"]))
    if shape == "duplicates":
        X = X[rng.integers(max(1, n // 4), size=n)]
    elif shape == "constant features":
        X[:, rng.random(features) < 0.5] = 3.0
    elif shape == "integers":
        X = np.clip(X, -1e6, 1e6).round()
    elif shape == "groups":
        X += 1e4 * rng.integers(3, size=(n, 1))
    elif shape == "all equal":
        X[:] = X[0]
    X = X.astype(draw(st.sampled_from([np.float64, np.float32])))
    hidden = tuple(draw(st.lists(st.integers(1, 12), max_size=2)))
    epochs, batch_norm = draw(st.integers(1, 4)), draw(st.booleans())
    model = draw(st.sampled_from([DEC, IDEC, DCN]))(
        draw(st.integers(1, min(n, 8))), n_init=draw(st.integers(1, 3)), pretrain_epochs=draw(st.integers(0, 2)), epochs=epochs,
        batch_size=draw(st.integers(1 + batch_norm, 64)) if n <= 60 else draw(st.integers(16, 256)), lr=draw(st.sampled_from([1e-5, 1e-3, 1e-2])),
        representation=Autoencoder(hidden, embedding=draw(st.none() | st.integers(1, 6)), batch_norm=batch_norm),
        intervention=draw(st.none() | st.builds(BRB, st.integers(1, 3), keep=st.sampled_from([0.0, 0.5, 1.0]), method=st.just(KMeans(n_init=1)))),
        augment=draw(st.sampled_from([None, "noise", "auto"])), random_state=draw(st.integers(0, 99)), device="cpu")
    return model, X


def check(problem):
    model, X = problem
    before, rng = X.copy(), np.random.default_rng(0)
    X.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)
        labels = model.fit(X).labels_
    assert (X == before).all()
    assert labels.shape == (len(X),) and set(labels) == set(range(model.n_clusters_)) and model.n_clusters_ <= model.n_clusters
    assert np.isfinite(model.transform(X)).all() and np.isfinite(model.cluster_centers_).all()
    assert (model.predict(X) == labels).all()
    order = rng.permutation(len(X))
    assert (model.predict(X[order]) == labels[order]).all(), "the order of rows"
    assert (model.predict(X[: 1 + len(X) // 3]) == labels[: 1 + len(X) // 3]).all(), "the company of rows"
    assert (model.predict(X[:1]) == labels[:1]).all(), "a row alone"
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1, rtol=1e-9)


QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}


@settings(max_examples=12, derandomize=True, **QUIET)
@given(problems(60))
def test_a_few_problems(problem):
    check(problem)


@pytest.mark.slow
@settings(max_examples=400, **QUIET)
@given(problems(200))
def test_many_problems(problem):
    check(problem)
