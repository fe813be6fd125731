"""The command line does what the library does, and says how it went."""

import csv
import json
import os
import random
import re
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from studies.tiny import same_table, tiny_study
from support import blobs

import reclust
from reclust.cli import fit, main, output, parser, report, study, suggest_k as suggesting
from reclust.data import Lens
from reclust.estimators import deep_clustering, presets, suggest_k
from reclust.studies import Failure, Kept, Ran, Store, Variant, listing, named, names, write_study
from reclust.studies.baselines import METHODS, baselines_of
from reclust.studies.html.report import Limits
from reclust.studies.measures import LABEL_FREE
from reclust.studies.tables.selection import SCORES
from reclust.utils.lock import only_one


@pytest.fixture
def table(tmp_path):
    """Four groups in a file, with their names and true groups."""
    X, y = blobs(n=120)
    path = tmp_path / "table.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", *(f"x{i}" for i in range(X.shape[1])), "group"])
        writer.writerows([f"s{i}", *row, f"g{label}"] for i, (row, label) in enumerate(zip(X, y, strict=True)))
    return path


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
def test_predict_finds_columns_by_their_names(table, tmp_path, capsys):
    assert main(["fit", str(table), "-k", "4", "-o", str(tmp_path / "out"), "--drop", "group", "--ids", "name", "--seed", "0",
                 "--pretrain-epochs", "1", "--epochs", "1", "--device", "cpu"]) == 0
    rows = [[str(i) if i else "extra", *row[::-1][1:]] for i, row in enumerate(csv.reader(open(table)))]
    other = tmp_path / "other.csv"
    other.write_text("".join(",".join(row) + "\n" for row in rows))
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "out"), str(other), "--ids", "name", "--report", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == (tmp_path / "out" / "labels.csv").read_text()
    assert main(["predict", str(tmp_path / "out"), str(table), "--ids", "name"]) == 1 and "--drop" in capsys.readouterr().err


def test_fit_and_predict_write_what_the_estimator_says(table, tmp_path, capsys):
    out = tmp_path / "out"
    given = ["fit", str(table), "-k", "4", "-o", str(out), "--labels", "group", "--ids", "name", "--seed", "0",
             "--pretrain-epochs", "5", "--epochs", "12", "--device", "cpu"]
    assert main(given) == 0
    printed = capsys.readouterr().out
    assert "120 samples in 4 clusters" in printed and "accuracy" in printed and "k-means" in printed
    rows = list(csv.DictReader(open(out / "labels.csv")))
    assert [row["id"] for row in rows] == [f"s{i}" for i in range(120)]
    model = reclust.load(out / "model.reclust")
    assert [int(row["cluster"]) for row in rows] == model.labels_.tolist()
    assert main(["predict", str(out / "model.reclust"), str(table), "--labels", "group", "--ids", "name",
                 "-o", str(tmp_path / "again.csv")]) == 0
    assert (tmp_path / "again.csv").read_text() == (out / "labels.csv").read_text()
    assert main(["predict", str(out / "model.reclust"), str(table), "--labels", "group", "--ids", "name"]) == 0
    assert capsys.readouterr().out == (out / "labels.csv").read_text()
    page = tmp_path / "page.html"
    assert main(["predict", str(out / "model.reclust"), str(table), "--labels", "group", "--ids", "name", "--report", str(page)]) == 0
    assert capsys.readouterr().out == (out / "labels.csv").read_text() and "table in 4 clusters" in page.read_text()
    fewer = tmp_path / "fewer.csv"
    fewer.write_text("".join(table.open().readlines()[:8]))
    assert main(["predict", str(out / "model.reclust"), str(fewer), "--labels", "group", "--ids", "name", "--report", str(page)]) == 1
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 8 and "fitted on 120" in said.err
    assert main(["predict", str(out / "model.reclust"), str(table), "--report", str(table)]) == 1
    assert "would be written over" in capsys.readouterr().err and table.read_text().startswith("name")


def test_fit_of_an_array_reports_json(tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs(n=60)[0])
    given = ["fit", str(tmp_path / "x.npy"), "-k", "4", "-o", str(tmp_path / "out"), "--json", "--pretrain-epochs", "0",
             "--epochs", "11", "--seed", "1", "--device", "cpu"]
    assert main(given) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["samples"] == 60 and sum(report["sizes"]) == 60 and "accuracy" not in report


def test_a_finished_model_is_not_written_over_unasked(tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs(n=60)[0])
    given = ["fit", str(tmp_path / "x.npy"), "-k", "4", "-o", str(tmp_path / "out"), "--pretrain-epochs", "0", "--epochs", "11", "--device", "cpu"]
    assert main([*given, "--seed", "1"]) == 0
    before = (tmp_path / "out" / "model.reclust").read_bytes()
    assert main([*given, "--seed", "2"]) == 1 and "is a finished model: choose another folder" in capsys.readouterr().err
    assert (tmp_path / "out" / "model.reclust").read_bytes() == before
    assert main([*given, "--seed", "2", "--overwrite"]) == 0
    assert (tmp_path / "out" / "model.reclust").read_bytes() != before


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """A fit that takes a moment, in a folder with its data."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", blobs(n=60)[0] * np.arange(1, 1 + blobs(n=60)[0].shape[1]))
    return ["fit", "x.npy", "-o", "deep/out", "--device", "cpu", "--seed", "0", "--pretrain-epochs", "2", "--epochs", "11", "-k"]


def test_features_keep_their_scales_where_that_is_asked_for(quick, capsys):
    assert main([*quick, "4", "--no-standardize"]) == 0
    X, model = np.load("x.npy"), reclust.load("deep/out/model.reclust")
    same = reclust.IDEC(4, standardize=False, random_state=0, device="cpu", pretrain_epochs=2, epochs=11, preset="everyday").fit(X)
    assert not model.standardize and (model.preparation_.first(X) == X).all() and (model.labels_ == same.labels_).all()
    capsys.readouterr()
    assert main(["predict", "deep/out", "x.npy"]) == 0, "the folder stands for the model in it"
    with open("deep/out/labels.csv") as written:
        assert capsys.readouterr().out == written.read()
    assert main(["predict", "deep", "x.npy"]) == 1 and os.path.join("deep", "model.reclust") in capsys.readouterr().err


def test_two_fits_do_not_write_to_one_folder(quick, tmp_path, capsys):
    out = tmp_path / "deep" / "out"
    out.mkdir(parents=True)
    with only_one(out / "fit.lock", "held"):
        assert main([*quick, "4"]) == 1
        assert "Another `reclust fit` is writing to deep/out: wait for it" in capsys.readouterr().err.replace(os.sep, "/")
    assert os.listdir(out) == ["fit.lock"], "as after a kill"
    with pytest.raises(OSError, match="could not be locked"), only_one(out, "a folder is no lock"):
        pass
    assert main([*quick, "4"]) == 0 and sorted(os.listdir(out)) == ["labels.csv", "model.reclust"]


def test_a_refused_fit_leaves_no_folder_that_it_made(quick, tmp_path, capsys):
    assert main([*quick, "500"]) == 1 and "needs at least 500 samples" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["x.npy"]
    (tmp_path / "deep" / "out").mkdir(parents=True)
    assert main([*quick, "500"]) == 1 and not os.listdir(tmp_path / "deep" / "out"), "one that was there stays"


def test_columns_to_leave_out_may_be_named_one_by_one():
    given = parser().parse_args(["fit", "x.csv", "-k", "3", "--drop", "a", "--drop", "b", "c"])
    assert given.drop == ["a", "b", "c"]


def test_without_a_terminal_lines_say_how_far_training_is(quick, monkeypatch, capsys):
    monkeypatch.setattr(output, "BETWEEN_LINES", 0.0)
    assert main([*quick, "4"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 13 and said[1:3] == ["reclust: pretraining, epoch 2 of 2", "reclust: clustering, epoch 1 of 11"]


@pytest.mark.filterwarnings("default::reclust.ReclustWarning")  # that the time is spent
def test_the_state_of_another_run_is_written_over_where_that_is_asked_for(tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs(n=60)[0])
    given = ["fit", str(tmp_path / "x.npy"), "-k", "4", "-o", str(tmp_path / "out"), "--pretrain-epochs", "0", "--seed", "1", "--device", "cpu"]
    assert main([*given, "--epochs", "400", "--minutes", "0.001"]) == 3
    assert main([*given, "--epochs", "11"]) == 1 and "with --overwrite" in capsys.readouterr().err
    assert main([*given, "--epochs", "11", "--overwrite"]) == 0
    assert reclust.load(tmp_path / "out" / "model.reclust").result_.trained_epochs("clustering") == 11
    assert main(["fit", str(tmp_path / "x.npy"), "-k", "4", "-o", str(tmp_path / "x.npy")]) == 1
    assert "x.npy is a file: name a folder with -o" in capsys.readouterr().err


@pytest.mark.filterwarnings("default::reclust.ReclustWarning")
def test_images_of_a_folder_are_brought_to_a_size(tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    for i in range(12):
        image.fromarray(np.random.default_rng(i).integers(0, 256, (20, 20), dtype=np.uint8)).save(tmp_path / f"{i}.png")
    given = ["-k", "2", "-o", str(tmp_path / "out"), "--size", "9", "8", "--device", "cpu", "--seed", "0", "--preset", "everyday",
             "--epochs", "1", "--pretrain-epochs", "1"]
    assert main(["fit", str(tmp_path), *given]) == 0
    assert reclust.load(tmp_path / "out" / "model.reclust").preparation_.image_shape == (9, 8, 1)
    assert main(["predict", str(tmp_path / "out" / "model.reclust"), str(tmp_path)]) == 0
    assert main(["fit", "digits", *given]) == 1 and "--size cannot be given for the set digits" in capsys.readouterr().err


@pytest.mark.filterwarnings("default::reclust.ReclustWarning")
def test_light_is_taken_from_colours_where_it_is_asked_for(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 256, (40, 6, 6, 3), dtype=np.uint8))
    given = ["fit", str(tmp_path / "x.npy"), "-k", "2", "-o", str(tmp_path / "out"), "--device", "cpu", "--seed", "0", "--n-init", "1",
             "--pretrain-epochs", "1", "--epochs", "1", "--light"]
    assert main([*given, "removed"]) == 0
    assert reclust.load(tmp_path / "out" / "model.reclust").lens == Lens(16, "removed")
    assert main([*given, "kept", "--overwrite"]) == 0
    assert reclust.load(tmp_path / "out" / "model.reclust").lens == Lens(16)


@pytest.mark.filterwarnings("default::reclust.ReclustWarning")  # that one epoch is too few for a reset
@pytest.mark.parametrize(("more", "replicas"), [([], 10), (["--preset", "everyday"], 1)])
def test_images_are_clustered_by_the_best_preset(tmp_path, more, replicas):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((40, 6, 6)))
    command = ["fit", str(tmp_path / "x.npy"), "-k", "3", "-o", str(tmp_path / "out"), "--device", "cpu", "--seed", "0",
               "--pretrain-epochs", "1", "--epochs", "1", *more]
    assert main(command) == 0
    assert len(reclust.load(tmp_path / "out" / "model.reclust").replicas_) == replicas


def test_new_images_are_read_as_those_of_the_fit_were(tmp_path, monkeypatch, capsys):
    image, rng = pytest.importorskip("PIL.Image"), np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    for folder, shapes in {"mixed": [(30, 20), (20, 20)] * 6, "equal": [(20, 20)] * 4, "colour": [(20, 20, 3)] * 4}.items():
        os.mkdir(folder)
        for i, shape in enumerate(shapes):
            image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(f"{folder}/{i:02d}.png")
    with open("mixed/03.png", "wb") as broken:
        broken.write(b"no image")
    fit = ["fit", "mixed", "-k", "2", "-o", "out", "--device", "cpu", "--seed", "0", "--preset", "everyday", "--augment", "none",
           "--pretrain-epochs", "1", "--epochs", "20"]
    assert main(fit) == 1 and "--skip-broken" in capsys.readouterr().err
    assert main([*fit, "--skip-broken"]) == 0
    assert "03.png" not in (tmp_path / "out" / "labels.csv").read_text() and "11 samples" in capsys.readouterr().out
    model = reclust.load("out/model.reclust")
    for folder in ("equal", "colour"):
        expected = model.predict(reclust.data.read(folder, size=(28, 28, 1)))
        assert (model.predict(folder) == expected).all()
        assert main(["predict", "out/model.reclust", folder]) == 0
        assert [row["cluster"] for row in csv.DictReader(capsys.readouterr().out.splitlines())] == [str(label) for label in expected]
        assert main(["predict", "out/model.reclust", f"{folder}/02.png"]) == 0
        assert capsys.readouterr().out == f"id,cluster\n02.png,{expected[2]}\n" and model.predict(f"{folder}/02.png") == expected[2:3]


@pytest.mark.parametrize(("given", "message"), [
    (["fit", "nowhere.npy", "-k", "3", "-o", "out"], "no file or folder nowhere.npy"),
    (["predict", "nowhere.reclust", "x.npy"], "nowhere.reclust"),
    (["fit", "digits", "-k", "3", "--labels", "group", "--key", "a"], "--labels, --key cannot be given for the set digits"),
    (["fit", "digits", "-k", "3", "--skip-broken"], "--skip-broken cannot be given for the set digits"),
    (["fit", "x.npy", "-k", "3", "--labels", "group"], r"labels='group' cannot be given for a \.npy file"),
    (["suggest-k", "x.npy", "--key", "a"], r"key='a' cannot be given for a \.npy file"),
    (["fit", "x.npy", "-k", "3", "--skip-broken"], r"on_error='skip' cannot be given for a \.npy file.*--skip-broken"),
    (["study", "run", "acc-tabel"], "no study named 'acc-tabel'.*acc-table"),
    (["study", "run", "missing.toml"], "missing.toml"),
    (["study", "status"], "no store studies.sqlite.*study run"),
    (["study", "retry", "x"], "no store"),
    (["study", "merge", "nofile.sqlite", "--store", "new.sqlite"], "no store nofile.sqlite"),
    (["study", "run", "acc-table", "--mini", "--on", "processes", "--workers", "0"], "worker processes must be an integer of at least 1"),
    (["study", "run", "acc-table", "--mini", "--datasets", "mnist"], "no dataset 'mnist'"),
    (["study", "run", "acc-table", "--mini", "--algorithms", "dbscan"], "no algorithm 'dbscan'; it has dec, idec, dcn"),
    (["study", "run", "voronoi", "--mini", "--start", "scratch"], "has only runs with pretraining"),
    (["study", "run", "acc-table", "--mini", "--variants", "worse"], "no variant 'worse'; it has none, brb"),
    (["study", "run", "acc-table", "--data", "nowhere"], "There is no folder nowhere to look for data sets in: make it first"),
    (["study", "run", "acc-table", "--data", "x.npy"], "x.npy is a file: name the folder that data sets are in"),
    (["study", "baselines", "--data", "nowhere"], "There is no folder nowhere"),
])
def test_mistakes_are_said_in_a_line(given, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros((3, 2)))
    assert main(given) == 1
    error = capsys.readouterr().err
    assert re.search(message, error) and error.startswith("reclust: error: ") and "Traceback" not in error
    with pytest.raises(Exception, match=message):
        main(["--traceback", *given])
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"], "what is refused leaves nothing behind"


@pytest.mark.parametrize(("given", "patched", "goes_on"), [
    (["fit", "x.npy", "-k", "3"], "reclust.cli.fit.read_data", None), (["study", "run", "acc-table"], "reclust.cli.study._study", True),
    (["suggest-k", "x.npy"], "reclust.cli.suggest_k.read_data", False), (["study", "list"], "reclust.studies.listing.listed", False),
])
def test_only_what_goes_on_after_a_stop_says_so(given, patched, goes_on, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(patched, stop)
    assert main(given) == 130
    what = {True: ": call again to go on", False: "", None: ": nothing was kept yet, so the next call starts anew"}[goes_on]
    assert capsys.readouterr().err == f"reclust: stopped{what}\n"


@pytest.mark.parametrize("given", [[], ["study"], ["fit"], ["fit", "x.npy"], ["study", "run"], ["no"]])
def test_wrong_usage_is_2(given, capsys):
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2 and "usage: reclust" in capsys.readouterr().err


def test_failures_of_several_variants_are_told_together(capsys):
    failures = [Failure("mine", variant, "digits", "dcn", variant, False, seed, "Traceback\nout of luck")
                for variant in ("none", "mine") for seed in (1, 2)]
    arguments = SimpleNamespace(json=False, store="s")
    study._report(Ran("mine", 0, 0, failures), 1.0, arguments)
    assert "failed: digits dcn none, seed 1 and 3 more, also of mine: out of luck\n" in capsys.readouterr().err


def test_a_study_from_a_file_runs_stops_goes_on_and_tells_failures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bad = Variant("bad", changes={"clustering": {"lr": 1e30}})
    study = tiny_study(name="mine", variants=(Variant("none"), bad), algorithms=("dcn",), pretrained=(False,))
    (tmp_path / "mine.toml").write_text(write_study(study))
    run = ["study", "run", "mine.toml", "--store", "s", "--device", "cpu"]
    assert main([*run, "--minutes", "1e-9"]) == 3
    assert "call again" in capsys.readouterr().err
    assert main(run) == 1
    captured = capsys.readouterr()
    assert "2 runs finished" in captured.out and "failed: digits dcn bad, seed 3" in captured.err
    assert main(["study", "status", "--store", "s"]) == 1
    assert capsys.readouterr().out.splitlines()[1].split()[:5] == ["mine", "4", "2", "2", "0"]
    assert main(["study", "status", "mine", "--failures", "--store", "s"]) == 1
    assert "Traceback" in capsys.readouterr().out
    assert main(["study", "status", "--json", "--failures", "--store", "s"]) == 1
    (status,) = json.loads(capsys.readouterr().out)
    assert status["failed"] == 2 == len(status["failures"])
    assert main(["study", "retry", "mine", "--store", "s", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"study": "mine", "waiting again": 2}]
    assert main([*run, "--json", "--retry"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["failed"] == 2


def test_without_a_terminal_lines_say_what_a_study_does(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(output, "BETWEEN_LINES", 0.0)
    study = tiny_study(name="mine", algorithms=("dcn",), pretrained=(False,), variants=(Variant("none"),))
    (tmp_path / "mine.toml").write_text(write_study(study))
    run = ["study", "run", str(tmp_path / "mine.toml"), "--device", "cpu", "--store"]
    assert main([*run, str(tmp_path / "one")]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "reclust: mine on digits: 2 runs waiting in 1 group, computed on cpu"
    assert len(said) == 5 and re.fullmatch(r"reclust: mine, digits: 25%, about .* left", said[1])
    assert main([*run, str(tmp_path / "two"), "--quiet"]) == 0 and capsys.readouterr().err == ""


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder in which nobody can make a file")
def test_a_store_that_cannot_be_made_is_said_in_a_line(capsys):
    assert main(["study", "run", "acc-table", "--mini", "--store", "/proc/x.sqlite"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("reclust: error: ") and "/proc/x.sqlite" in error and "choose another" in error and error.count("\n") == 1


def test_a_study_for_ray_leaves_no_store_where_it_is_not_installed(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["study", "run", "acc-table", "--mini", "--on", "ray", "--store", str(tmp_path / "s")]) == 1
    assert "needs ray" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_runs_without_data_are_said_to_be_tried_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bad = Variant("bad", changes={"clustering": {"lr": 1e30}})
    study = tiny_study(name="mine", datasets=("mine_1", "digits"), variants=(bad,), algorithms=("dcn",), pretrained=(False,), seeds=(3,),
                       protocol=replace(tiny_study().protocol, n_clusters=3))
    (tmp_path / "mine.toml").write_text(write_study(study))
    run = ["study", "run", "mine.toml", "--store", "s", "--device", "cpu", "--data", "."]
    assert main([*run, "--datasets", "mine_1"]) == 1
    assert "runs whose data was missing are tried again by the next call; see" in capsys.readouterr().err
    assert main(run) == 1
    assert "by the next call, other failed runs only with --retry; see" in capsys.readouterr().err
    assert main(["study", "retry", "nope", "--store", "s"]) == 1
    assert "has no study 'nope'; it has mine" in capsys.readouterr().err


def test_stores_merge_and_export(tmp_path, capsys):
    study = tiny_study(name="mine", algorithms=("dcn",), pretrained=(False,), variants=(Variant("none"),))
    (tmp_path / "mine.toml").write_text(write_study(study))
    assert main(["study", "run", str(tmp_path / "mine.toml"), "--store", str(tmp_path / "one"), "--device", "cpu"]) == 0
    assert main(["study", "merge", str(tmp_path / "one"), "--store", str(tmp_path / "two"), "--json"]) == 0
    assert '"runs taken over": 2' in capsys.readouterr().out
    assert main(["study", "export", "-o", str(tmp_path / "tables"), "--store", str(tmp_path / "two")]) == 0
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["mine.clustering.csv", "mine.runs.csv"]


def test_baselines_of_the_best_preset_go_on_where_they_were_stopped(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("reclust.studies.baselines.best_baselines", lambda: (baselines_of(tiny_study()),))
    run = ["study", "baselines", "--store", str(tmp_path / "s"), "--sets", "digits", "--device", "cpu", "--json"]
    for more, code, now, finished in ((["--minutes", "1e-9"], 3, 0, 0), (["--methods", "pixels"], 0, 2, 2), ([], 0, 2, 4)):
        assert main([*run, *more]) == code
        assert json.loads(capsys.readouterr().out) == [
            {"study": "baselines", "finished now": now, "finished": finished, "waiting": 4 - finished}]


def test_baselines_of_unknown_sets_and_no_time_at_all_are_refused(tmp_path, capsys):
    assert main(["study", "baselines", "--store", str(tmp_path / "s"), "--sets", "nosuch"]) == 1
    assert "no baselines of 'nosuch', only of optdigits" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["study", "run", "acc-table", "--minutes", "0"])


def test_values_of_ones_own_are_known_once_their_module_is_imported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "my_own_parts.py").write_text("""
from typing import ClassVar
from reclust import Step, value
@value
class Nothing(Step):
    part: ClassVar[str] = "nothing"
    def __call__(self, target): pass
""")
    (tmp_path / "own.toml").write_text('variants = [{name = "x", intervention = {kind = "Every", interval = 1, steps = [{kind = "Nothing"}]}}]')
    assert main(["study", "show", "own.toml"]) == 1
    assert "Unknown kind of value 'Nothing'" in capsys.readouterr().err
    assert main(["--import", "my_own_parts", "study", "show", "own.toml"]) == 0
    assert 'kind = "Nothing"' in capsys.readouterr().out


def test_tables_and_figures_of_a_study(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(write_study(tiny_study(name="own", variants=(Variant("none"), Variant("brb", reclust.BRB(1))))))
    assert main(["study", "run", "own.toml", "--store", "s.sqlite", "--quiet", "--device", "cpu", "--baselines"]) == 0
    capsys.readouterr()
    assert main(["table", "s.sqlite"]) == 0
    shown = capsys.readouterr().out
    assert "own, ACC" in shown and "+BRB" in shown and "\033" not in shown
    for ending in ("csv", "md", "tex", "txt"):
        assert main(["table", "s.sqlite", "--study", "own", "-o", f"t.{ending}"]) == 0 and (tmp_path / f"t.{ending}").stat().st_size > 100
    assert main(["table", "s.sqlite", "-o", "t.doc"]) == 1 and "end it with" in capsys.readouterr().err
    assert main(["figure", "--list"]) == 0 and "learning-curves" in capsys.readouterr().out
    assert main(["figure", "s.sqlite", "learning-curves", "--study", "own", "-o", "curves.svg"]) == 0
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")
    assert main(["figure", "s.sqlite", "learning-curves", "--study", "own", "-o", "drawn/here"]) == 0
    assert (tmp_path / "drawn" / "here" / "learning-curves.pdf").is_file()
    with Store("s.sqlite") as store:
        store.plan("not begun", "spec", named("voronoi").planned())
    assert main(["table", "s.sqlite"]) == 0 and "own, ACC" in capsys.readouterr().out
    assert main(["figure", "s.sqlite", "voronoi"]) == 1
    assert re.search("study run voronoi .* or draw it from another one with --study: .*own", capsys.readouterr().err)
    assert main(["figure", "s.sqlite", "-o", "all"]) == 1
    told = capsys.readouterr()
    assert "all: 0 figures" in told.out and re.fullmatch("left out for lack of records: learning-curves, .*says what it needs\n", told.err)
    assert main(["figure"]) == 1 and "--list" in capsys.readouterr().err


def test_a_study_whose_intervention_never_fires_says_so_in_a_line(tmp_path, capsys):
    study = tiny_study(name="own", algorithms=("dec",), pretrained=(False,), seeds=(3,), variants=(Variant("late", reclust.BRB(9)),))
    (tmp_path / "own.toml").write_text(write_study(study))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(["study", "run", str(tmp_path / "own.toml"), "--store", str(tmp_path / "s"), "--device", "cpu", "--json"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == ["reclust: warning: These variants of own have an intervention that never fires in their epochs and so "
                                     "changes nothing: 'late' (4 epochs). Train longer, or choose a shorter interval."]
    assert json.loads(said.out)[0]["finished"] == 1


def test_studies_are_listed_and_shown(capsys):
    assert main(["study", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed] == names() and listed[0]["runs"] == 1440
    assert main(["study", "show", "acc-table", "--mini"]) == 0
    assert capsys.readouterr().out == write_study(named("acc-table-mini"))


def test_data_sets_are_listed_and_checked(tmp_path, capsys):
    assert main(["data", "list", "--folder", str(tmp_path)]) == 0
    assert "embedded" in capsys.readouterr().out
    assert main(["data", "check", "digits", "--folder", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["data", "check", "digits", "usps", "--folder", str(tmp_path), "--json"]) == 1
    assert [row["state"] for row in json.loads(capsys.readouterr().out)] == ["complete", "missing"]


def test_what_the_parser_says_is_what_the_library_has():
    """It knows names and defaults by heart, since what they come from takes seconds to import."""
    assert fit.PRESETS == tuple(presets.PRESETS) and fit.AUGMENTATIONS == tuple(deep_clustering.AUGMENTATIONS)
    assert study.EVERY == Kept().every and study.BASELINES == tuple(METHODS)
    assert {name: default for name, (default, _) in report.SHOWN.items()}.items() <= vars(Limits()).items()
    assert suggesting.MOST == suggest_k.MOST and SCORES == tuple(LABEL_FREE) and listing._rows() == listing.computed(), "run tools/catalog.py"


def test_every_command_has_help(capsys):
    def walk(found, path):
        assert found.description, path
        for action in found._actions:
            for name, child in (getattr(action, "choices", None) or {}).items() if action.nargs == "A..." else ():
                walk(child, [*path, name])

    walk(parser(), ["reclust"])


def test_completion_knows_the_commands(capsys):
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    assert "study" in capsys.readouterr().out


@pytest.mark.slow
def test_the_small_main_table_survives_kills(tmp_path):
    """Killed at three moments and called again, the study ends with the same numbers as an undisturbed one."""
    chance = random.Random(1)

    def command(store):
        return [sys.executable, "-m", "reclust.cli", "study", "run", "acc-table", "--mini", "--store", str(tmp_path / store),
                "--threads", "1", "--device", "cpu", "--quiet"]

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    assert subprocess.run(command("undisturbed"), env=environment).returncode == 0
    for _ in range(3):
        killed = subprocess.Popen(command("killed"), env=environment)
        time.sleep(chance.uniform(8, 30))
        killed.kill()
        killed.wait()
    assert subprocess.run(command("killed"), env=environment).returncode == 0
    with Store(tmp_path / "undisturbed") as one, Store(tmp_path / "killed") as other:
        assert same_table(one, other, "acc-table-mini")
