"""Every container of samples gives the same rows, names and images."""

import re
import sys
import warnings

import numpy as np
import pytest
import torch
from scipy import sparse
from support import blobs

from reclust import ReclustWarning
from reclust.data import Dataset, read
from reclust.data.accept import accept, select_columns
from reclust.data.preparation import Preparation

X, Y = blobs(n=40)
NAMES = [f"gene{i}" for i in range(12)]
IMAGES = np.random.default_rng(0).integers(0, 255, size=(40, 6, 5)).astype(np.uint8)
COLORS = np.random.default_rng(0).integers(0, 255, size=(40, 6, 5, 3)).astype(np.uint8)


def frame(X=X, columns=NAMES):
    return pytest.importorskip("pandas").DataFrame(X, columns=columns)


def tensors(*parts):
    return torch.utils.data.TensorDataset(*map(torch.from_numpy, parts))


def write_npy(folder):
    np.save(folder / "x.npy", X)
    return str(folder / "x.npy")


def write_csv(folder):
    frame().to_csv(folder / "x.csv", index=False, float_format="%.17g")
    return folder / "x.csv"


@pytest.mark.parametrize("bring", [
    lambda _: X.tolist(), lambda _: torch.from_numpy(X), lambda _: np.asfortranarray(X), lambda _: Dataset(samples=X), lambda _: np.ma.array(X),
    lambda _: tensors(X), lambda _: tensors(X, Y), lambda _: torch.utils.data.Subset(tensors(X), range(40)),
    lambda _: torch.utils.data.DataLoader(tensors(X), shuffle=True), lambda _: frame(), lambda _: frame(columns=range(12)), write_npy, write_csv,
    lambda folder: np.load(write_npy(folder), mmap_mode="r"), lambda _: pytest.importorskip("pyarrow").table(dict(zip(NAMES, X.T, strict=True))),
    pytest.param(lambda _: pytest.importorskip("polars").DataFrame(dict(zip(NAMES, X.T, strict=True))), marks=pytest.mark.extras),
    pytest.param(lambda _: pytest.importorskip("polars").DataFrame(dict(zip(NAMES, X.T, strict=True))).lazy(), marks=pytest.mark.extras),
    pytest.param(lambda _: pytest.importorskip("anndata").AnnData(X), marks=pytest.mark.extras),
], ids=["list", "tensor", "fortran", "Dataset", "nothing masked", "torch data", "torch data with labels", "torch subset", "DataLoader", "frame", "frame without names",
        "npy", "csv", "mapped", "arrow", "polars", "lazy polars", "AnnData"])
def test_every_container_gives_the_same_rows(tmp_path, bring):
    samples = accept(bring(tmp_path))
    np.testing.assert_array_equal(samples.array, X)
    assert samples.image_shape is None and (samples.n_samples, samples.n_features) == (40, 12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats_keep_their_type(kind):
    assert accept(X.astype(kind)).array.dtype == kind and accept(frame(X.astype(kind))).array.dtype == kind


def test_sparse_rows_stay_sparse_and_bfloat16_becomes_float32():
    rows = sparse.csr_matrix(X)
    assert sparse.issparse(accept(rows).array) and (accept(rows).array != rows).nnz == 0
    assert accept(torch.from_numpy(X).bfloat16()).array.dtype == np.float32


def test_names_of_samples_and_features_are_kept(tmp_path):
    named = frame().set_axis([f"cell{i}" for i in range(40)])
    assert accept(named).ids[1] == "cell1" and accept(named).feature_names == tuple(NAMES)
    assert accept(frame()).ids is None and accept(X).feature_names is None
    assert accept(Dataset(samples=X, ids=np.arange(40) + 5)).ids[0] == 5
    assert accept(write_csv(tmp_path)).feature_names == tuple(NAMES)


@pytest.mark.parametrize(("images", "shape"), [
    (IMAGES, None), (IMAGES[..., None], None), (torch.from_numpy(IMAGES[:, None]), None), (IMAGES.reshape(40, 30), (6, 5)),
    (IMAGES.reshape(40, 30).astype(float), (6, 5, 1)), (sparse.csr_array(IMAGES.reshape(40, 30).astype(float)), (6, 5)),
], ids=["grey", "one channel", "torch", "rows", "rows with a channel", "sparse rows"])
def test_images_in_every_layout_are_the_same_images(images, shape):
    samples = accept(images, image_shape=shape)
    assert samples.image_shape == (6, 5, 1)
    seen, expected = (Preparation.fit(one, standardize=True).network_input(one.array) for one in (samples, accept(IMAGES)))
    assert torch.equal(seen, expected)


@pytest.mark.parametrize("shape", [None, (6, 5, 3)])
def test_channels_that_come_first_are_moved(shape):
    first = np.moveaxis(COLORS, -1, 1)
    np.testing.assert_array_equal(accept(first, image_shape=shape).array, COLORS)
    assert accept(first, image_shape=(3, 6, 5)).image_shape == (3, 6, 5), "image_shape decides"


@pytest.mark.parametrize(("shape", "warned"), [((60, 3), "read as gray images"), ((3, 60), "read as gray images"), ((2, 16, 12), "with 12 channels"),
                                               ((5, 8, 8), "with 8 channels"), ((8, 8, 5), None), ((8, 8), None)])
def test_layouts_that_may_be_misread_are_warned_about(shape, warned):
    given = np.random.default_rng(0).random((12, *shape))
    if warned:
        with pytest.warns(ReclustWarning, match=warned + r".*image_shape=" + re.escape(str(shape))):
            accept(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReclustWarning)
        accept(given, image_shape=shape if warned else None)


@pytest.mark.parametrize(("data", "shape", "message"), [
    (np.where(X == X[7, 3], np.nan, X), None, r"X: missing or infinite values in 'feature 3' \(1 of 40 rows\)"), (np.where(X > 3, np.inf, X), None, "missing or infinite"),
    ([["a", "b"]] * 9, None, "could not convert"), (np.ma.masked_greater(X, 3), None, "missing or infinite"),
    (X, (5, 5), r"image_shape=\(5, 5\) does not match samples of shape \(12,\)"), (X, 4, "image_shape must be a sequence"), (X, "2x6", "image_shape must be a sequence"),
    (X, (3.9, 4), "each number in image_shape must be an integer"), (X, (-2, -6), "each number in image_shape"), (IMAGES, (4, 4), "does not match"),
])
def test_mistakes_are_named(data, shape, message):
    with pytest.raises(ValueError, match=message):
        accept(data, image_shape=shape)


def test_columns_that_are_not_numbers_or_incomplete_are_encoded_or_named():
    pd = pytest.importorskip("pandas")
    mixed = frame().assign(color=["red", "blue"] * 20)
    found = accept(mixed)
    assert found.feature_names == (*NAMES, "color=blue", "color=red")
    np.testing.assert_array_equal(found.array, np.c_[X, np.tile([[0, 1], [1, 0]], (20, 1))])
    shuffled = mixed.iloc[::-1, ::-1].assign(more="unknown columns are ignored")
    np.testing.assert_array_equal(accept(shuffled, encoder=found.encoder).array, found.array[::-1])
    np.testing.assert_array_equal(accept(mixed.to_numpy(), encoder=found.encoder).array, found.array)
    with pytest.raises(ValueError, match="lacks columns of the fit: 'color'"):
        accept(frame(), encoder=found.encoder)
    with pytest.raises(ValueError, match="not numeric: 'color'"):
        accept(mixed, numeric=True)
    with pytest.raises(ValueError, match=r"missing.* in 'age' \(20 of 40 rows\), 'n' \(1 of 40 rows\)"):
        accept(frame().assign(age=[None, 3.0] * 20, n=pd.array([1] * 39 + [None], dtype="Int64")), numeric=True)
    with pytest.warns(ReclustWarning, match=f"are ignored: '{NAMES[0]}', 'color'"):
        np.testing.assert_array_equal(accept(read(mixed), columns=NAMES[1:], numeric=True).array, X[:, 1:])


def test_a_column_that_names_the_rows_is_left_out_and_becomes_the_ids():
    named = frame().assign(name=[f"row {i}" for i in range(40)])
    with pytest.warns(ReclustWarning, match="left out: 'name'"):
        found = accept(named)
    np.testing.assert_array_equal(found.array, X)
    assert found.ids.tolist() == named["name"].tolist()
    assert accept(named[:3], encoder=found.encoder).ids.tolist() == ["row 0", "row 1", "row 2"]


def test_columns_are_selected_by_name():
    table = read(frame().iloc[:, ::-1])
    np.testing.assert_array_equal(select_columns(table, NAMES).samples, X)
    with pytest.warns(ReclustWarning, match="data has columns that were not in the fit; they are ignored: 'gene1', 'gene0'"):
        np.testing.assert_array_equal(select_columns(table, NAMES[2:]).samples, X[:, 2:])
    with pytest.raises(ValueError, match="lacks columns of the fit: 'length'"):
        select_columns(table, [*NAMES, "length"])


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux")
def test_a_folder_of_images_names_its_samples(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "more").mkdir()
    for i, pixels in enumerate(IMAGES):
        image.fromarray(pixels).save(tmp_path / ("more" if i % 2 else ".") / f"{i:02d}.png")
    samples = accept(tmp_path)
    assert sorted(samples.ids) == sorted(f"more/{i:02d}.png" if i % 2 else f"{i:02d}.png" for i in range(40))
    np.testing.assert_array_equal(samples.array, IMAGES[[int(name[-6:-4]) for name in samples.ids]])
    assert accept(tmp_path, image_shape=(9, 8, 3)).image_shape == (9, 8, 3)


@pytest.mark.parametrize("X", [X, X.astype(np.float32), X.round().astype(np.int64), X.tolist(), torch.from_numpy(X), X.reshape(-1, 3, 4), np.zeros((5, 3, 4), np.uint8)],
                         ids=["float64", "float32", "integers", "list", "tensor", "images", "bytes"])
def test_arrays_are_accepted_without_changing_the_filters_of_warnings(X, monkeypatch):
    """Threads share the filters, so that two of them may restore each other's."""

    def enter(self):
        raise AssertionError("warnings.catch_warnings")

    monkeypatch.setattr(warnings.catch_warnings, "__enter__", enter)
    assert accept(X).n_samples == len(X)
