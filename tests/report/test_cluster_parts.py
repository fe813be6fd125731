"""Map, agreement and dimensions of an embedding."""

import numpy as np
import pytest

from reclust.report import cluster_parts as parts


def test_the_map_is_the_plane_of_the_largest_variance():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 5)) * [5, 3, 1, 0.5, 0.1]
    made = parts.embedding_map(z, z[:3], np.arange(50) % 3, np.arange(50))
    variances = np.sort(np.linalg.eigvalsh(np.cov(z.T)))[::-1]
    assert made["share"] == pytest.approx(variances[:2].sum() / variances.sum())
    assert (made["clusters"] == np.arange(50) % 3).all() and made["n_clusters"] == 3


def test_agreement_does_not_depend_on_the_names_of_clusters():
    rng = np.random.default_rng(0)
    reference = rng.integers(4, size=60)
    renamed = np.array([2, 3, 0, 1])[reference]
    other = np.where(np.arange(60) < 6, (renamed + 1) % 4, renamed)
    shares = parts.agreement(np.stack([renamed, other]), reference)
    np.testing.assert_allclose(shares, np.where(np.arange(60) < 6, 0.5, 1.0))


@pytest.mark.parametrize(("spread", "expected"), [((1, 0, 0), 1.0), ((1, 1, 0), 2.0), ((0, 0, 0), 0.0)])
def test_effective_dimensions(spread, expected):
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T * np.array(spread)
    assert parts.effective_dimensions(corners) == pytest.approx(expected)
