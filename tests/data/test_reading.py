"""read(): every form of the same samples gives the same Dataset, and ids travel along."""

from __future__ import annotations

import sys
import zlib

import numpy as np
import pytest
import torch
from scipy import sparse
from support import memory_of
from torch.utils.data import IterableDataset, TensorDataset

from reclust import ReclustWarning
from reclust.data import DataError, read

RNG = np.random.default_rng(1)
TABLE = RNG.normal(size=(10, 4)).astype(np.float32)
IMAGES = RNG.integers(0, 256, (10, 6, 5, 3), dtype=np.uint8)
LABELS = np.arange(10) % 3


class Stream(IterableDataset):
    def __iter__(self):
        return ((torch.tensor(row), int(label)) for row, label in zip(TABLE, LABELS, strict=True))


def in_files(tmp_path):
    np.save(tmp_path / "x.npy", TABLE)
    np.savez(tmp_path / "x.npz", samples=TABLE, y=LABELS, ids=np.array(list("abcdefghij")))
    yield from (tmp_path / "x.npy", tmp_path / "x.npz")


def test_every_form_gives_the_same_table(tmp_path):
    forms = [TABLE, torch.from_numpy(TABLE), TABLE.tolist(), TensorDataset(torch.from_numpy(TABLE)), Stream()]
    for form in [*forms, *in_files(tmp_path), str(tmp_path / "x.npy")]:
        found = read(form, labels=LABELS)
        np.testing.assert_array_equal(found.samples, np.asarray(TABLE))
        assert (found.image_shape, found.n_clusters) == (None, 3)
        np.testing.assert_array_equal(found.labels, LABELS)


def test_a_npy_file_is_mapped_not_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(TABLE))
    found = read(tmp_path / "x.npy", ids=range(10))
    assert isinstance(found.samples, np.memmap)
    np.testing.assert_array_equal(found.rows([3, 1]), TABLE[[3, 1]])
    assert found.take(slice(2, 4)).ids.tolist() == [2, 3]


def test_npz_and_hdf5_find_the_usual_names_or_those_asked_for(tmp_path):
    np.savez(
        tmp_path / "x.npz",
        images=IMAGES,
        labels=LABELS,
        split=LABELS == 0,
        ids=np.array(list("abcdefghij")),
        more=TABLE,
    )
    found = read(tmp_path / "x.npz")
    np.testing.assert_array_equal(found.images, IMAGES)
    assert (found.image_shape, found.max_value, len(found.test)) == ((3, 6, 5), 255, 4)
    assert found.test.ids.tolist() == ["a", "d", "g", "j"]
    np.testing.assert_array_equal(read(tmp_path / "x.npz", key="more").samples, TABLE)
    np.savez(tmp_path / "two.npz", a=TABLE, b=TABLE)
    with pytest.raises(DataError, match=r"two\.npz holds a, b; choose the samples with key="):
        read(tmp_path / "two.npz")
    with pytest.raises(DataError, match="holds no array 'c'"):
        read(tmp_path / "two.npz", key="c")
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["group/table"], file["names"], file["y"] = TABLE, list("abcdefghij"), LABELS
    found = read(tmp_path / "x.h5", ids="names")
    np.testing.assert_array_equal(found.samples, TABLE)
    assert found.ids.tolist() == list("abcdefghij") and found.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("how", ["external link", "external storage", "virtual"])
@pytest.mark.parametrize("name", ["x.h5", pytest.param("x.h5ad", marks=pytest.mark.extras)])
def test_hdf5_takes_nothing_from_other_files(how, name, tmp_path):
    h5py = pytest.importorskip("h5py")
    name.endswith("d") and pytest.importorskip("anndata")
    (tmp_path / "secret").write_bytes(TABLE.tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["data"] = TABLE
    with h5py.File(tmp_path / name, "w") as file:
        file["table"] = TABLE
        if how == "external link":
            file["more"] = h5py.ExternalLink(tmp_path / "other.h5", "data")
        elif how == "external storage":
            file.create_dataset("more", TABLE.shape, TABLE.dtype, external=[(tmp_path / "secret", 0, TABLE.nbytes)])
        else:
            layout = h5py.VirtualLayout(TABLE.shape, TABLE.dtype)
            layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "data", TABLE.shape)
            file.create_virtual_dataset("more", layout)
    with pytest.raises(DataError, match=rf"{name} takes 'more' from other files \(external or virtual data\): save"):
        read(tmp_path / name, key="more")


def test_chunked_text_is_measured_and_read(tmp_path):
    h5py, words = pytest.importorskip("h5py"), [f"sample {i}" for i in range(10)]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["data"] = TABLE
        file.create_dataset("ids", data=words, dtype=h5py.string_dtype(), chunks=(3,), compression="gzip")
    assert read(tmp_path / "x.h5").ids.tolist() == words
    with h5py.File(tmp_path / "x.h5", "w") as file:  # of a text, a chunk holds a length, an address and a number
        file["data"] = np.zeros((20_000, 1))
        ids = file.create_dataset("ids", (20_000,), h5py.string_dtype(), chunks=(20_000,), compression="gzip")
        ids[0] = "x" * 50_000
        _, chunk = ids.id.read_direct_chunk((0,))
        ids.id.write_direct_chunk((0,), zlib.compress(zlib.decompress(chunk)[:16] * 20_000))
    taken, found = memory_of(lambda: read(tmp_path / "x.h5"))
    assert "claims to hold" in str(found) and taken < 64e6 + 20 * (tmp_path / "x.h5").stat().st_size


def test_images_of_every_layout_become_the_same():
    first = np.moveaxis(IMAGES, 3, 1)
    for form in (IMAGES, first, torch.from_numpy(first.copy()), TensorDataset(torch.from_numpy(first.copy()))):
        found = read(form)
        np.testing.assert_array_equal(found.images, IMAGES)
        assert (found.image_shape, found.max_value) == ((3, 6, 5), 255)
    for grey in (IMAGES[..., 0], IMAGES[..., :1], first[:, :1]):
        found = read(grey)
        np.testing.assert_array_equal(found.images, IMAGES[..., 0])
        assert found.image_shape == (1, 6, 5)
    assert read(IMAGES / 255).max_value == 1 and read(IMAGES.astype(np.uint16)).max_value == 65535


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_rows_stay_sparse_and_are_densified_by_the_batch(kind):
    dense = np.where(TABLE > 0.5, TABLE, 0)
    found = read(kind(dense))
    assert sparse.issparse(found.samples)
    np.testing.assert_array_equal(found.rows(np.array([7, 2, 2])), dense[[7, 2, 2]])
    np.testing.assert_array_equal(found.take([1, 3]).rows(slice(None)), dense[[1, 3]])


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_array", "coo_matrix"])
@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_rows_come_back_from_a_file_of_scipy(kind, compressed, tmp_path):
    dense = np.where(TABLE > 0.5, TABLE, 0)
    sparse.save_npz(tmp_path / "x.npz", getattr(sparse, kind)(dense), compressed=compressed)
    found = read(tmp_path / "x.npz", labels=LABELS)
    assert isinstance(found.samples, sparse.csr_array) and found.image_shape is None
    np.testing.assert_array_equal(found.rows(slice(None)), dense)
    np.testing.assert_array_equal(found.labels, LABELS)
    with pytest.raises(DataError, match="key='data' cannot be given for a .npz file of scipy.sparse.save_npz"):
        read(tmp_path / "x.npz", key="data")


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form, part, values", [
    ("csr", "indices", [0, 9]), ("csr", "indices", [0, -1]), ("csr", "indptr", [0, 9, 2]), ("csr", "indptr", [0, 1, 9]), ("csc", "indices", [0, 10**8])])
def test_a_wrong_index_of_a_sparse_matrix_writes_nowhere(form, part, values, tmp_path):
    matrix = sparse.eye_array(2, format=form)
    arrays = {"format": form.encode(), "shape": [2, 2], "data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    np.savez(tmp_path / "x.npz", **arrays | {part: np.array(values, np.int32)})
    with pytest.raises(DataError, match="damaged"):
        read(tmp_path / "x.npz")


@pytest.mark.parametrize("options", [{}, {"chunks": (10,)}, {"compression": "gzip", "shuffle": True}])
def test_a_text_of_hdf5_cannot_claim_more_than_the_file(options, tmp_path):
    h5py = pytest.importorskip("h5py")
    names = [f"row {i}" for i in range(30)]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["data"] = np.zeros((30, 2))
        texts = file.create_dataset("ids", data=names, dtype=h5py.string_dtype(), **options)
        place = texts.id.get_chunk_info(0).byte_offset if options else texts.id.get_offset()
    assert read(tmp_path / "x.h5").ids.tolist() == names
    with open(tmp_path / "x.h5", "r+b") as file:
        file.seek(place)
        file.write(b"\xff" * 4)
    with pytest.raises(DataError, match="damaged" if "compression" in options else "claims to hold 42949"):
        read(tmp_path / "x.h5")


def test_hdf5_with_huge_chunks_deep_groups_or_many_links_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", sys)  # is not asked
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "chunk.h5", "w") as file:
        file.create_dataset("data", (3, 4), "f4", maxshape=(3, None), chunks=(3, 10**8), compression="gzip")
    with h5py.File(tmp_path / "whole.h5ad", "w") as file:
        file.create_dataset("X", (10**5, 10**5), "f4", chunks=True)
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        file["/".join("g" * 500)] = np.zeros((3, 4))
    with h5py.File(tmp_path / "links.h5", "w", libver="latest") as file:
        file["data"] = np.zeros((3, 4))
        for i in range(11_000):
            file[f"{i}"] = file["data"]
    for name, problem in (("chunk.h5", "claims to hold"), ("whole.h5ad", "claims to hold"), ("deep.h5", "over 50 levels deep"),
                          ("links.h5", "over 10000 arrays")):
        with pytest.raises(DataError, match=problem):
            read(tmp_path / name)


def test_anndata_gives_its_matrix_names_and_a_column_of_obs(tmp_path):
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    dense = np.where(TABLE > 0, TABLE, 0)
    texts = {"dtype": object}  # which every version of anndata writes
    kinds = pandas.Categorical.from_codes(LABELS, pandas.Index(["x", "y", "z"], **texts))
    obs = pandas.DataFrame({"kind": kinds}, index=pandas.Index([f"cell{i}" for i in range(10)], **texts))
    for matrix in (dense, sparse.csr_matrix(dense)):
        data = anndata.AnnData(matrix, obs=obs, var=pandas.DataFrame(index=pandas.Index(list("abcd"), **texts)))
        data.write_h5ad(tmp_path / "x.h5ad")
        for found in (read(data, labels="kind"), read(tmp_path / "x.h5ad", labels="kind")):
            np.testing.assert_array_equal(found.rows(slice(None)), dense)
            assert found.ids[3] == "cell3" and found.labels.tolist() == LABELS.tolist()
    with pytest.raises(DataError, match="no column 'colour'"):
        read(data, labels="colour")
    assert read(data, ids="kind").ids.tolist() == list(obs["kind"])
    data.obs.loc["cell4", "kind"] = None
    with pytest.raises(DataError, match="1 of 10 labels are missing, the first in row 5"):
        read(data, labels="kind")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros(5), r"shape \(5,\); needed"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.zeros((2, 5, 6, 7)), "with 1 or 3 channels"),
        (np.array([["a", "b"]]), "needed: numbers"),
        (np.array([[{}, 1]], dtype=object), "needed: numbers"),
        ([[1, 2], [3]], "The sequence"),
        (TensorDataset(torch.zeros(0, 2)), "TensorDataset is empty"),
        (7, "Cannot read a int"),
        ("nowhere.csv", "no file or folder nowhere.csv"),
    ],
)
def test_what_cannot_be_read_is_explained(source, message):
    with pytest.raises(DataError, match=message):
        read(source)


def test_items_of_different_shapes_and_unknown_endings_are_named(tmp_path):
    class Ragged(torch.utils.data.Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return torch.zeros(2 + (i == 2))

    with pytest.raises(DataError, match=r"items of different shapes, such as \[\(2,\), \(3,\)\]"):
        read(Ragged())
    for name, ending in (("x.json", r"\.json"), ("x.json.gz", r"\.json\.gz"), ("x.gz", r"\.gz")):
        (tmp_path / name).write_bytes(b"PK")
        with pytest.raises(DataError, match=rf"{name}: files with the ending '{ending}' cannot be read; needed: \.npy, .*\.txt \(also \.gz\), .*\.hdf5"):
            read(tmp_path / name)


@pytest.mark.parametrize(("name", "said"), [("x.xlsx", "as CSV UTF-8, or give pandas.read_excel"), ("x.ODS", "save spreadsheets as CSV"),
                                            ("x.heic", "convert it to JPEG or PNG first")])
def test_other_programs_files_are_told_what_to_become(name, said, tmp_path):
    (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(DataError, match=said):
        read(tmp_path / name)


def test_lengths_must_agree():
    with pytest.raises(DataError, match=r"labels of shape \(9,\); needed"):
        read(TABLE, labels=LABELS[:9])
    with pytest.raises(DataError, match="fractions"):
        read(TABLE, labels=LABELS + 0.5)
    for wrong in (np.inf, -np.inf, 1e300, np.nan):  # no warning of numpy's beside it
        with pytest.raises(DataError, match=r"labels are fractions, missing or infinite, such as (-?inf|1e\+300|nan); needed"):
            read(TABLE, labels=np.where(LABELS == 2, wrong, LABELS))
    with pytest.raises(DataError, match="has no train part"):
        _ = read(TABLE).train
    with pytest.raises(DataError, match="not images"):
        _ = read(TABLE).images


def test_what_cannot_be_asked_of_such_data_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", samples=TABLE)
    np.save(tmp_path / "x.npy", TABLE)
    np.savetxt(tmp_path / "x.csv", TABLE, delimiter=",")
    (tmp_path / "folder").mkdir()
    by_name = {"key": "a", "labels": "kind", "ids": "name"}
    for source, of, refused in [
        (tmp_path / "x.npy", r"a \.npy file, which holds one array", [*by_name, "size", "on_error"]),
        (tmp_path / "x.npz", r"a \.npz file", ["size", "on_error"]),
        (tmp_path / "x.csv", "a table", ["key", "size", "on_error"]),
        (tmp_path / "folder", "images, whose ids are the file names", ["key", "ids"]),
        (TABLE, "a ndarray, which holds samples without names", by_name),
        (torch.from_numpy(TABLE), "a Tensor", by_name),
        (TABLE.tolist(), "a list", by_name),
        (sparse.csr_array(TABLE), "a csr_array", by_name),
        (Stream(), "a Stream", by_name),
    ]:
        for name in refused:
            value = {**by_name, "size": (8, 8), "on_error": "skip"}[name]
            with pytest.raises(DataError, match=rf"{name}=.* cannot be given for {of}"):
                read(source, **{name: value})


@pytest.mark.parametrize("labels", [
    ["a", "", "b", " "], ["a", None, "b", None], np.array(["a", np.nan, "b", np.nan], dtype=object),
])
def test_labels_that_are_missing_are_no_class(labels):
    with pytest.raises(DataError, match="2 of 4 labels are missing, the first in row 2; fill them in"):
        read(TABLE[:4], labels=labels)
    assert read(TABLE[:4], labels=["None", "NA", "nan", "a"]).n_clusters == 4


@pytest.mark.parametrize(
    ("module", "name"),
    [("h5py", "x.h5"), ("pyarrow.parquet", "x.parquet"), ("PIL.Image", "folder"), ("anndata", "x.h5ad")],
)
def test_a_missing_extra_is_named(module, name, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    for file in ("x.h5", "x.parquet", "x.h5ad", "folder/x.png"):
        (tmp_path / file).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module.partition('.')[0]}: pip install 'reclust\["):
        read(tmp_path / name)


@pytest.mark.parametrize(("name", "values", "reason"), [
    ("y", np.linspace(0, 1, 10), "fractions"), ("target", np.full(10, np.nan), "fractions, missing"),
    ("y", LABELS[:, None], r"shape is \(10, 1\)"), ("split", np.arange(10) % 5, "0 .train. or 1"), ("split", np.array(["train"] * 10), "0 .train. or 1"),
])
def test_arrays_that_only_have_the_name_of_labels_are_left_aside(name, values, reason, tmp_path):
    np.savez(tmp_path / "x.npz", X=TABLE, **{name: values})
    with pytest.warns(ReclustWarning, match=f"'{name}' is ignored.*{reason}"):
        found = read(tmp_path / "x.npz")
    assert found.labels is None and found.split is None and found.samples.shape == TABLE.shape
    if name != "split":
        with pytest.raises((DataError, ValueError)):
            read(tmp_path / "x.npz", labels=name)


def test_ids_of_every_kind_become_numbers_or_texts():
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2020-01-01", periods=3)
    for ids, said in ((days, ["2020-01-01", "2020-01-02", "2020-01-03"]), (days.to_period("D"), ["2020-01-01", "2020-01-02", "2020-01-03"]),
                      (pandas.MultiIndex.from_tuples([("a", 1), ("b", 2), ("c", 3)]), ["('a', 1)", "('b', 2)", "('c', 3)"]),
                      (np.array([b"a", b"b", b"c"]), ["a", "b", "c"]), (np.array([3, 1, 2]), [3, 1, 2])):
        frame = pandas.DataFrame(TABLE[:3], index=ids)
        assert read(frame).ids.tolist() == said
    with pytest.raises(DataError, match=r"needed: \(10,\)"):
        read(TABLE, ids=np.zeros((10, 2)))


def test_hdf5_arrays_that_hold_neither_numbers_nor_text_are_not_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    for kind in (np.dtype([("name", h5py.string_dtype()), ("number", "<i4")]), np.dtype((h5py.string_dtype(), (3,)))):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file["data"] = TABLE
            file.create_dataset("ids", (10,), kind)
        with pytest.raises(DataError, match="/ids holds neither numbers nor text"):
            read(tmp_path / "x.h5")


def test_matrices_of_scipy_are_read_in_forms_that_take_no_more_memory(tmp_path):
    rows = sparse.random(20, 6, density=0.3, random_state=0)
    for form in ("csr", "csc", "coo"):
        sparse.save_npz(tmp_path / "x.npz", rows.asformat(form))
        np.testing.assert_array_equal(read(tmp_path / "x.npz").samples.toarray(), rows.toarray())
    for form in ("bsr", "dia"):
        sparse.save_npz(tmp_path / "x.npz", rows.asformat(form))
        with pytest.raises(DataError, match="save the matrix as CSR, CSC or COO"):
            read(tmp_path / "x.npz")


def test_short_texts_do_not_unpack_to_many_objects(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", X=TABLE, ids=np.full(4_000_000, b"a"))
    with pytest.raises(DataError, match="claims to hold"):
        read(tmp_path / "x.npz")


def test_integer_ids_of_parquet_keep_their_digits_where_one_is_missing(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"id": [1712345678901234567, None, 3], "x": [1.0, 2, 3]}), tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet", ids="id").ids.tolist()[::2] == ["1712345678901234567", "3"]


def test_cells_that_hold_dictionaries_are_named():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="'more' holds a dict in each row"):
        read(pandas.DataFrame({"x": [1.0, 2, 3], "more": [{"a": 1}, {}, {}]}))
