"""Drift is found where there is some, and only there."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

from reclust import IDEC, Reclust, load

X, _ = make_blobs(800, 6, centers=3, cluster_std=3.0, random_state=1)
HALF, OTHER = X[:400], X[400:]
MEAN = "distance to the cluster's mean"


@pytest.fixture(scope="module")
def model():
    return Reclust(3, effort="quick", random_state=0).fit(HALF)


def changed(table):
    return set(table.index[table["adjusted"] < 0.01])


def test_samples_of_the_same_source_do_not_drift(model):
    assert not changed(model.drift(OTHER)) and not changed(model.drift(OTHER[:1]))


def test_a_shift_of_one_feature_is_found_there(model):
    shifted = OTHER + np.eye(6)[2] * 10
    assert {"feature 2", MEAN} <= changed(model.drift(shifted))
    assert not {f"feature {i}" for i in (0, 1, 3, 4, 5)} & changed(model.drift(shifted))


def test_a_single_row_has_the_p_value_of_its_rank(model):
    far = model.drift(OTHER[:1] + 100)
    assert far["p_value"][MEAN] == pytest.approx(2 / 401) and MEAN in changed(far)


def test_shares_are_compared_by_an_exact_test(model):
    only = OTHER[model.predict(OTHER) == 1]
    table = model.drift(only)
    assert table["new"]["share of cluster 1"] == 1 and "share of cluster 1" in changed(table)
    assert table["fitted"]["share of cluster 1"] == np.mean(model.labels_ == 1)


def test_a_file_keeps_what_is_compared_and_no_sample(model, tmp_path):
    model.save(tmp_path / "model.reclust")
    loaded = load(tmp_path / "model.reclust")
    pd.testing.assert_frame_equal(loaded.drift(OTHER), model.drift(OTHER))
    kept = {tuple(row) for row in loaded.reference_.features}
    assert not kept & {tuple(row) for row in HALF.astype(np.float32)}


def test_files_of_version_0_1_kept_nothing_to_compare_with():
    old = load(Path(__file__).parents[1] / "version_0_1" / "model.reclust")
    with pytest.raises(ValueError, match="fit it again"):
        old.drift(OTHER)


def test_mixed_tables_images_and_sparse_rows():
    table = pd.DataFrame({"size": HALF[:, 0], "color": np.where(HALF[:, 1] > 0, "red", "blue")})
    mixed = Reclust(2, effort="quick", random_state=0).fit(table)
    assert "color=red" in changed(mixed.drift(table.assign(color="red")))
    small = {"pretrain_epochs": 1, "epochs": 1, "intervention": None, "random_state": 0}
    images = np.random.default_rng(0).integers(0, 200, size=(40, 6, 6), dtype=np.uint8)
    assert MEAN in changed(IDEC(1, **small).fit(images).drift(images + 55))
    rows = sparse.random(50, 300, density=0.1, random_state=0, format="csr")
    assert len(IDEC(1, **small).fit(rows).drift(rows)) == 2


def test_a_shift_beside_a_large_offset_is_found():
    offset = np.array([2.4e9, 0, 0, 0, 0, 0])
    model = Reclust(3, effort="quick", random_state=0).fit(HALF + offset)
    assert "feature 0" in changed(model.drift(OTHER + offset + [10, 0, 0, 0, 0, 0]))
