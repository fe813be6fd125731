"""Samples as a network sees them, and warnings about new samples in other units."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from reclust import ReclustWarning
from reclust.data.accept import accept
from reclust.data.preparation import Preparation


def test_images_are_augmented_in_the_unit_range_without_standardising():
    images = np.random.default_rng(0).integers(3, 200, (20, 4, 4, 3), dtype=np.uint8)
    kept = Preparation.fit(accept(images), standardize=False)
    assert kept.inputs(images).samples.min() >= 0 and kept.inputs(images).samples.max() <= 1  # what augmentations know
    np.testing.assert_allclose(kept.network_input(images).numpy(), np.moveaxis(images, -1, 1), atol=1e-9)


def test_new_rows_in_other_units_are_warned_about():
    table = replace(accept(np.random.default_rng(1).uniform(1, 10, (200, 3))), feature_names=("age", "glucose", "weight"))
    fitted = Preparation.fit(table, standardize=True)
    with pytest.warns(ReclustWarning, match=r"differ a lot from the fit: 'glucose' \(about 9\d, in the fit 5\.\d+ ± 2\.\d+\)\. Use"):
        fitted.warn_if_units_differ(replace(table, array=table.array * [1, 18, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReclustWarning)
        fitted.warn_if_units_differ(replace(table, array=18 * table.array[:4]))  # a few rows may be unusual
        fitted.warn_if_units_differ(replace(table, array=table.array + 10))
        Preparation.fit(table, standardize=False).warn_if_units_differ(table)


@pytest.mark.parametrize("factor", [1 / 255, 1 / 16, 255], ids=["fractions", "8 of 12 bits", "bytes"])
def test_images_on_another_scale_are_warned_about(factor):
    images = np.random.default_rng(0).integers(0, 255, size=(40, 6, 5)) / (1 if factor < 1 else 255)
    fitted = Preparation.fit(accept(images), standardize=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReclustWarning)
        for dark in (0 * images[:1], images[:3] / 16):
            fitted.warn_if_units_differ(accept(dark))
    with pytest.warns(ReclustWarning, match="use the same scale"):
        fitted.warn_if_units_differ(accept(factor * images))


def test_features_that_were_constant_stay_0():
    constant, other = (np.c_[np.random.default_rng(0).random((20, 3)), np.full(20, value)] for value in (5.0, 5e4))
    fitted = Preparation.fit(accept(constant), standardize=True)
    assert (fitted.network_input(other) == fitted.network_input(constant)).all()


def test_principal_components_keep_their_proportions():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(500, 10)) * 0.7 ** np.arange(10)
    scaled = Preparation.fit(accept(rows), standardize=True).network_input(rows).numpy()
    np.testing.assert_allclose(scaled, (rows - rows.mean(0)) / np.sqrt(rows.var(0).mean()))
    shuffled = Preparation.fit(accept(rows[:, ::-1]), standardize=True).network_input(rows[:, ::-1]).numpy()
    np.testing.assert_allclose(shuffled.std(0), 1)


@pytest.mark.filterwarnings("error")
def test_constant_columns_are_no_principal_components():
    rows = np.random.default_rng(3).normal(size=(500, 10)) * [1, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.09, 0, 0]
    np.testing.assert_allclose(Preparation.fit(accept(rows), standardize=True).network_input(rows).numpy()[:, :8].std(0), 1)
