"""Views of tables: what each does to columns, and principal components against scikit-learn."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from reclust.ensemble.views import VIEWS, principal_components, standardized, table_views


def table(n=80, d=6):
    return np.random.default_rng(0).standard_t(2, size=(n, d)) * np.arange(1, d + 1) + 5


def test_standardizing_is_scikit_learns_and_constant_columns_become_zero():
    X = np.column_stack([table(), np.full(80, 0.1)])
    np.testing.assert_allclose(standardized(X)[:, :-1], StandardScaler().fit_transform(X[:, :-1]))
    assert (standardized(X)[:, -1] == 0).all()


@pytest.mark.parametrize("shape", [(80, 6), (5, 9)])
def test_principal_components_are_scikit_learns_up_to_sign(shape):
    X = table(*shape)
    expected = PCA(3, svd_solver="full").fit_transform(X)
    np.testing.assert_allclose(np.abs(principal_components(X, 3)), np.abs(expected), atol=1e-8)
    np.testing.assert_allclose(principal_components(X, 20), X - X.mean(0))


def test_views_do_not_depend_on_units_and_skip_constant_columns():
    X = np.column_stack([table(), np.ones(80)])
    views, scaled = table_views(X), table_views(X * np.array([1, 10, 0.1, 3, 1e6, 1e-6, 1]) - 7)
    assert views.keys() == VIEWS.keys()
    for name, view in views.items():
        assert view.shape == (80, 6) and np.isfinite(view).all()
        np.testing.assert_allclose(view, scaled[name], atol=1e-6)


def test_only_outliers_are_clipped():
    z = standardized(table())
    clipped = VIEWS["clipped"](z)
    assert np.abs(clipped).max() == 2 and (clipped[np.abs(z) < 2] == z[np.abs(z) < 2]).all()


def test_a_table_of_constants_has_one_column_of_zeros():
    assert all((view == 0).all() for name, view in table_views(np.ones((10, 4))).items() if name != "ranks")


def test_columns_with_a_scale_are_only_centered_and_divided():
    X = np.column_stack([table(), np.arange(80) % 2])
    scales = np.array([np.nan] * 6 + [0.5])
    for name, view in table_views(X, scales).items():
        np.testing.assert_allclose(view[:, :6], table_views(X[:, :6])[name])
        np.testing.assert_allclose(view[:, 6], np.where(X[:, 6], 1, -1))
    only = table_views(X[:, 6:], scales[6:])["ranks"]
    np.testing.assert_allclose(only[:, 0], np.where(X[:, 6], 1, -1))
