"""What people bring and do: mistakes that must cost nothing, and data of many origins."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from support import blobs

from reclust import IDEC, Autoencoder, load
from reclust.cli import main
from reclust.data import read
from reclust.data.errors import DataError
from reclust.utils.files import check_writable

X = blobs(60)[0]
pytestmark = pytest.mark.filterwarnings("ignore:The intervention never fires", "ignore:.* clusters? ended without samples")


def small(**given):
    return IDEC(**{"n_clusters": 3, "epochs": 2, "pretrain_epochs": 1, "random_state": 0, "representation": Autoencoder((8,))} | given)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "in.csv"
    np.savetxt(path, X, delimiter=",")
    return path


FIT = ["-k", "3", "--epochs", "2", "--pretrain-epochs", "1", "--seed", "0"]


def test_commands_do_not_write_over_what_they_read(table, tmp_path, capsys):
    assert main(["fit", str(table), *FIT, "-o", str(tmp_path / "out")]) == 0
    model = tmp_path / "out" / "model.reclust"
    named = tmp_path / "labels.csv"
    named.write_bytes(table.read_bytes())
    kept = {path: path.read_bytes() for path in (table, model, named)}
    for wrong in (["predict", str(model), str(table), "-o", str(table)], ["predict", str(model), str(table), "-o", str(model)],
                  ["fit", str(named), *FIT, "-o", str(tmp_path)], ["fit", str(table), *FIT, "-o", str(tmp_path / "o"), "--report", str(table)]):
        assert main(wrong) != 0 and "is an input" in capsys.readouterr().err
    assert main(["fit", str(table), *FIT, "-o", str(tmp_path)]) != 0 and "labels.csv" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in kept} == kept


def test_folders_in_place_of_files_are_refused_before_the_work(table, tmp_path, capsys):
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        check_writable(tmp_path)
    assert main(["fit", str(table), *FIT, "-o", str(tmp_path / "out"), "--report", str(tmp_path)]) != 0
    assert "is a folder" in capsys.readouterr().err and not (tmp_path / "out" / "model.reclust").exists()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        small().fit(X).save(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_names_of_files_that_are_no_text_lose_no_fit(tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(12):
        pixels = np.random.default_rng(i).integers(0, 255, (8, 8), dtype=np.uint8)
        image.fromarray(pixels).save(folder / f"{i}.png")
    try:
        (folder / "0.png").rename(folder / b"M\xfcller.png".decode("utf-8", "surrogateescape"))
    except OSError:
        pytest.skip("this file system takes text only")
    given = [str(folder), "-k", "2", "--epochs", "2", "--pretrain-epochs", "1", "--preset", "everyday", "--seed", "0"]
    assert main(["fit", *given, "-o", str(tmp_path / "out")]) == 0
    assert b"M\xfcller.png" in (tmp_path / "out" / "labels.csv").read_bytes()
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "out" / "model.reclust"), str(folder)]) == 0 and "ller.png" in capsys.readouterr().out


def test_masked_values_are_missing_wherever_they_come_from():
    wrong = X.copy()
    wrong[::4, 0] = -9999
    masked = np.ma.masked_equal(wrong, -9999)
    model = small().fit(X)
    for attempt in (lambda: read(masked), lambda: small().fit(list(masked)), lambda: model.predict(masked), lambda: read(list(masked))):
        with pytest.raises(ValueError, match="15 masked values"):
            attempt()


@pytest.mark.parametrize(("shape", "kept", "told"), [((3, 16, 16), (16, 16, 3), False), ((1, 8, 8), (8, 8, 1), False), ((2, 16, 12), (2, 16, 12), True), ((8, 8, 5), (8, 8, 5), False)])
def test_only_what_may_be_misread_is_told(shape, kept, told, recwarn):
    model = small(augment=None).fit(np.random.default_rng(0).random((12, *shape)))
    assert model.preparation_.image_shape == kept
    assert any("X is read as images" in str(one.message) for one in recwarn) == told


def test_probabilities_of_samples_far_from_everything_are_even():
    with np.errstate(all="ignore"):
        shares = small().fit(X).predict_proba(X[:2] * 1e160)
    np.testing.assert_allclose(shares.sum(1), 1)


def test_polars_frames_are_checked_as_those_of_pandas():
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    frame = polars.DataFrame({f"x{i}": column for i, column in enumerate(X.T)})
    fitted = small().fit(frame)
    assert list(fitted.feature_names_in_) == frame.columns and (fitted.labels_ == small().fit(frame.lazy()).labels_).all()
    with pytest.raises(ValueError, match="not numeric: 'town'"):
        small().fit(frame.with_columns(town=polars.lit("here")))


def test_a_fitted_estimator_is_a_start(tmp_path):
    first = small().fit(X)
    again, by_result = (small().fit(X, start=start) for start in (first, first.result_))
    assert (again.labels_ == by_result.labels_).all()
    with pytest.raises(ValueError, match="start must be an instance of Result, got 3"):
        again.fit(X, start=3)
    assert (again.fit(X, start=again).labels_.shape == again.labels_.shape)  # nothing is forgotten before
    again = small().fit(X, start=first)
    first.save(tmp_path / "m.reclust")
    with pytest.raises(ValueError, match=r"holds a model, not a result: `reclust.load` reads models"):
        small().fit(X, start=tmp_path / "m.reclust")
    assert (small().fit(X, start=load(tmp_path / "m.reclust")).labels_ == again.labels_).all()


def test_a_fitted_estimator_hands_on_the_replica_that_it_kept():
    first = small(n_init=4, epochs=4).fit(X)
    object.__setattr__(first, "best_replica_", 3)
    still = small(epochs=1, lr=1e-12, random_state=7, intervention=None).fit(X, start=first)
    for name, stack in still.result_.parameters.items():
        torch.testing.assert_close(stack[0], first.result_.parameters[name][3], rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match=r"start has 0 replicas with seed"):
        small(random_state=7).fit(X, start=first.result_)


def test_what_is_refused_leaves_an_earlier_fit_whole():
    model = small().fit(X)
    before, holes = model.predict(X), X.copy()
    holes[0, 0] = np.nan
    for wrong in (holes, X[:2], [["a", "b"]] * 9):
        with pytest.raises(ValueError):
            model.fit(wrong)
        assert model.n_features_in_ == X.shape[1] and (model.predict(X) == before).all()


def test_the_index_of_a_frame_names_its_rows(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    assert small().fit(frame).ids_ is None
    model = small().fit(frame.set_axis([f"k{i}" for i in range(len(X))]))
    model.save(tmp_path / "m")
    assert model.ids_[1] == "k1" and (load(tmp_path / "m").ids_ == model.ids_).all()


def test_scores_without_a_number_are_written_as_json_has_them(tmp_path):
    import json

    from safetensors import safe_open

    small().fit(X).save(tmp_path / "m")
    with safe_open(tmp_path / "m", "np") as file:
        header = json.loads(file.metadata()["reclust"], parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert header["scores"] == [None] and np.isnan(load(tmp_path / "m").replicas_[0].score)
