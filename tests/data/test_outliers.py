"""Columns that standardising does not suit are named, and no others."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from reclust import ReclustWarning
from reclust.data.accept import accept
from reclust.data.preparation import Preparation

TABLE = np.random.default_rng(1).uniform(1, 10, (200, 3))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("rows", "value", "said"), [(1, 1e5, "100000; 1 of"), (2, -99999, "-99999; 2 of"), (30, -999, "-999; 30 of"), (80, -999, "-999; 80 of")])
def test_values_that_erase_their_column_are_told(rows, value, said, form):
    data = TABLE.copy()
    data[:rows, 1] = value
    with pytest.warns(ReclustWarning, match=rf"Outliers dominate .* in 'b' \({said} 200 rows\)\. Correct"):
        Preparation.fit(replace(accept(form(data)), feature_names=("a", "b", "c")), standardize=True)
    with pytest.warns(ReclustWarning, match=r"in feature 1 \("):
        Preparation.fit(accept(form(data)), standardize=True)


@pytest.mark.parametrize("column", [
    lambda rng: rng.lognormal(0, 2, 200), lambda rng: rng.standard_t(3, 200), lambda rng: rng.poisson(0.02, 200) * 50, lambda rng: np.arange(200) == 7,
    lambda rng: np.where(np.arange(200) == 7, 1e5, rng.integers(0, 5, 200)), lambda rng: np.where(np.arange(200) % 2, 1e5, 0) + rng.normal(size=200),
    lambda rng: np.full(200, 5.0),
], ids=["skewed", "heavy tails", "sparse counts", "rare category", "few values", "two groups", "constant"])
def test_columns_that_have_nothing_to_lose_are_not_told(column):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReclustWarning)
        for seed in range(3):
            data = np.c_[TABLE, column(np.random.default_rng(seed))]
            Preparation.fit(accept(data), standardize=True)
            Preparation.fit(accept(data[:25]), standardize=True)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_tables_that_want_logarithms_are_told(form):
    rng = np.random.default_rng(0)
    amounts = np.c_[rng.lognormal(3, 1, (200, 2)), rng.normal(size=200), rng.integers(0, 3, 200)]
    with pytest.warns(ReclustWarning, match=r"2 of 4 columns have long tails \('a', 'b'\).* np\.log1p on them"):
        Preparation.fit(replace(accept(form(amounts)), feature_names=("a", "b", "c", "d")), standardize=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReclustWarning)
        Preparation.fit(accept(form(amounts)), standardize=False)
        Preparation.fit(accept(form(amounts[:25])), standardize=True)
        for others in (np.log1p(amounts[:, :2]), np.c_[amounts[:, 0], TABLE[:, :2]], amounts * 1e-3,  # log1p leaves small ones as they are
                       amounts - 100, np.where(rng.random((200, 3)) < 0.2, 20, 10) + rng.normal(size=(200, 3)), rng.poisson(0.2, (200, 3))):
            Preparation.fit(accept(form(others)), standardize=True)
