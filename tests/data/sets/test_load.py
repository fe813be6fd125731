"""Named sets: the original files give back the images they were made of; nothing else is accepted in their place."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from reclust.data import DataError, load, names, prepare
from reclust.data.sets import load as load_module

ORIGINALS = ["mnist", "fmnist", "kmnist", "usps", "optdigits", "gtsrb", "cifar10", "cifar100_20"]
REAL = {
    **{"optdigits": 5_620, "usps": 9_298, "mnist": 70_000, "fmnist": 70_000, "kmnist_test": 10_000},
    **{"gtsrb": 7_860, "cifar10_half": 30_000},
}


def test_the_paper_has_eight_sets_and_one_is_embedded():
    assert set(names()) == {*ORIGINALS, "digits"}


@pytest.mark.parametrize(("name", "form"), [*((name, 0) for name in ORIGINALS), ("optdigits", 1)])
def test_original_files_give_their_images(name, form, tiny, tmp_path):
    if name == "gtsrb":
        pytest.importorskip("PIL")
    made = tiny(name)
    paths = made.write(tmp_path, form=form)
    found = load(name, folder=tmp_path, download=False)
    order = np.arange(len(made.labels))
    if name == "gtsrb":  # the training images lie in one folder a class
        order = np.concatenate([np.argsort(made.labels[made.split == 0], kind="stable"), np.flatnonzero(made.split)])
    np.testing.assert_array_equal(found.images, made.images[order])
    np.testing.assert_array_equal(found.labels, made.labels[order])
    np.testing.assert_array_equal(found.split, made.split)
    assert (found.image_shape, found.n_clusters) == (made.known.image_shape, made.known.n_clusters)
    assert found.citation and found.licence and found.files == tuple(map(str, paths))
    np.testing.assert_array_equal(found.train.labels, found.labels[:12])
    np.testing.assert_array_equal(found.test.images, found.images[12:])


def test_gtsrb_is_resized_as_pillow_does_by_default_and_keeps_file_names(formats, tmp_path):
    image = pytest.importorskip("PIL.Image")
    original = np.random.default_rng(0).integers(0, 256, (47, 39, 3), dtype=np.uint8)
    path = tmp_path / "GTSRB-Training_fixed.zip"
    path.write_bytes(formats.zip_of({"GTSRB/Training/00017/00003_00029.ppm": formats.ppm(original)}))
    part = load_module.color.read_gtsrb_train(path)
    np.testing.assert_array_equal(part.images[0], np.asarray(image.fromarray(original).resize((32, 32))))
    assert part.labels.tolist() == [2] and part.ids.tolist() == ["GTSRB/Training/00017/00003_00029.ppm"]


def test_usps_bytes_are_cut_not_rounded(formats, tmp_path):
    values = np.zeros((1, 256))
    values[0, :5] = [-1, 1, 0.999, 0.0, -0.9921569]
    path = tmp_path / "usps.bz2"
    path.write_bytes(formats.libsvm_bz2(values, np.array([9])))
    part = load_module.grey.read_libsvm(path)
    expected = ((values.astype(np.float32) + 1) / 2 * 255).astype(np.uint8)
    np.testing.assert_array_equal(part.images.reshape(1, 256), expected)
    assert expected[0, :4].tolist() == [0, 255, 254, 127] and part.labels.tolist() == [9]


def test_digits_are_those_of_scikit_learn(tmp_path):
    digits, expected = load("digits", folder=tmp_path), load_digits()
    np.testing.assert_array_equal(digits.images, expected.images)
    np.testing.assert_array_equal(digits.labels, expected.target)
    assert (digits.n_clusters, digits.image_shape, digits.max_value, digits.split) == (10, (1, 8, 8), 16, None)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_a_packed_file_serves_as_the_originals_do(name, tiny, tmp_path):
    made = tiny(name)
    made.write(tmp_path / "originals")
    np.savez_compressed(tmp_path / f"{name}.npz", images=made.images, labels=made.labels, split=made.split)
    packed, original = load(name, folder=tmp_path), load(name, folder=tmp_path / "originals")
    for field in ("samples", "labels", "split"):
        np.testing.assert_array_equal(getattr(packed, field), getattr(original, field))
    assert packed.citation == original.citation and packed.resize_to == original.resize_to
    assert packed.n_clusters == original.n_clusters


def test_part_of_a_set_loads_under_a_longer_name_only(tiny, tmp_path):
    made = tiny("kmnist")
    for name in ("kmnist", "kmnist_test"):
        np.savez(tmp_path / f"{name}.npz", images=made.images[:5], labels=made.labels[:5], split=made.split[:5])
    part = load("kmnist_test", folder=tmp_path)
    assert len(part) == 5 and part.n_clusters == 5 and part.citation == made.known.citation
    with pytest.raises(DataError, match=r"kmnist\.npz: images: \(5,\); kmnist has \(19,\)"):
        load("kmnist", folder=tmp_path)


def test_any_packed_file_loads_by_its_name_and_names_cannot_leave_the_folder(tmp_path):
    np.savez(tmp_path / "mine.npz", images=np.ones((4, 5, 6), np.uint8), labels=[0, 1, 1, 0])
    mine = load("mine", folder=tmp_path)
    assert (mine.name, mine.image_shape, mine.n_clusters, mine.citation) == ("mine", (1, 5, 6), 2, "")
    (tmp_path / "inner").mkdir()
    with pytest.raises(DataError, match="no set named"):
        load("../mine", folder=tmp_path / "inner")


def test_files_of_another_set_or_changed_ones_are_refused(tiny, tmp_path, monkeypatch):
    made = tiny("mnist")
    made.write(tmp_path)
    for change, message in (
        ({"counts": (60_000, 10_000)}, r"images: \(12, 7\); mnist has \(60000, 10000\)"),
        ({"histogram": (19, *[0] * 9)}, "images per class"),
        ({"total": 1}, "sum of pixels"),
        ({"image_shape": (1, 27, 28)}, "mnist has"),
    ):
        monkeypatch.setitem(load_module.SETS, "mnist", replace(made.facts(), **change))
        with pytest.raises(DataError, match=message):
            load("mnist", folder=tmp_path)


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("name", ["cifar10", "cifar100_20"])
def test_cifar_is_unpickled_only_with_the_right_checksum(name, tiny, formats, tmp_path):
    path, = tiny(name).write(tmp_path)
    member = "cifar-10-batches-py/data_batch_1" if name == "cifar10" else "cifar-100-python/train"
    path.write_bytes(formats.tar_gz_of({member: pickle.dumps(Harmful(tmp_path / "harm"))}))
    with pytest.raises(DataError, match=f"{path.name} is damaged or another file: its md5 is"):
        load(name, folder=tmp_path, download=False)
    assert not (tmp_path / "harm").exists()
    assert all(form.verify and file.checksum for form in load_module.SETS[name].forms for file in form.files)


def test_every_file_that_is_downloaded_has_an_address_and_a_checksum():
    for known in load_module.SETS.values():
        for file in known.forms[0].files:
            assert file.urls and all(url.startswith(("https://", "http://")) for url in file.urls)
            algorithm, _, digest = (file.checksum or "").partition(":")
            assert len(digest) == {"md5": 32, "sha256": 64}[algorithm]


def test_facts_agree_with_themselves():
    for known in load_module.SETS.values():
        assert sum(known.counts) == sum(known.histogram)


@pytest.mark.parametrize("name", REAL)
def test_real_sets_load_and_standardise(name, real_folder):
    found = load(name, folder=real_folder, download=False)
    assert len(found) == REAL[name]
    prepared = prepare(found)
    side = 28 if found.image_shape[0] == 1 else 32
    assert prepared.samples.shape == (len(found), found.image_shape[0], side, side)
    assert prepared.samples.min() >= 0 and prepared.samples.max() == 1
    standardized = prepared.standardized()
    np.testing.assert_allclose(standardized.mean((0, 2, 3), dtype=np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(standardized.std((0, 2, 3), dtype=np.float64), 1, atol=1e-5)


@pytest.mark.parametrize(("name", "deviation"), [("optdigits", 0.86), ("usps", 0.92)])
def test_statistics_before_resizing_give_the_published_deviation(name, deviation, real_folder):
    prepared = prepare(load(name, folder=real_folder), statistics="before_resize")
    assert round(float(prepared.standardized().std()), 2) == deviation


def test_the_real_test_part_of_optdigits_is_the_embedded_set(real_folder):
    np.testing.assert_array_equal(load("optdigits", folder=real_folder).test.images, load("digits").images)
