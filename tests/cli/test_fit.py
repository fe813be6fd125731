"""`reclust fit` and `reclust predict`."""

import csv
import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import warnings

import numpy as np
import pytest
from support import blobs

import reclust
from reclust.cli import common, main, parser
from reclust.data import Lens
from reclust.ensemble.recipes import Effort
from reclust.utils.files import exclusive_lock


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
def test_predict_matches_columns_by_name(table, tmp_path, capsys):
    assert main(["fit", str(table), "-k", "4", "-o", str(tmp_path / "out"), "--drop", "group", "--ids", "name", "--seed", "0",
                 "--pretrain-epochs", "1", "--epochs", "1", "--device", "cpu"]) == 0
    rows = [[str(i) if i else "extra", *row[::-1][1:]] for i, row in enumerate(csv.reader(open(table)))]
    other = tmp_path / "other.csv"
    other.write_text("".join(",".join(row) + "\n" for row in rows))
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "out"), str(other), "--ids", "name", "--report", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == (tmp_path / "out" / "labels.csv").read_text()
    assert main(["predict", str(tmp_path / "out"), str(table), "--ids", "name"]) == 0  # the other columns are ignored
    assert capsys.readouterr().out == (tmp_path / "out" / "labels.csv").read_text()


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
def test_what_fails_with_a_model_names_its_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, _ = blobs(n=60)
    np.save("x.npy", X)
    reclust.Reclust(3, effort="quick", random_state=0).fit(X).save("a.model")
    monkeypatch.setattr("reclust.report.card.card", lambda model: {"seconds": object()})
    monkeypatch.setattr(reclust.Reclust, "assign", lambda *_: {}["damaged"])
    for command, told in ((["show", "a.model", "--json"], "a.model cannot be used: TypeError"), (["predict", "a.model", "x.npy"], "a.model cannot predict x.npy: KeyError")):
        assert main(command) == 1 and capsys.readouterr().err.startswith(f"reclust: error: {told}")


def test_fit_and_predict_match_the_estimator(table, tmp_path, capsys):
    out = tmp_path / "out"
    given = ["fit", str(table), "-k", "4", "-o", str(out), "--labels", "group", "--ids", "name", "--seed", "0",
             "--pretrain-epochs", "2", "--epochs", "11", "--device", "cpu"]
    assert main(given) == 0
    printed = capsys.readouterr().out
    assert "120 samples in 4 clusters" in printed and "accuracy" in printed and "k-means" in printed
    assert printed.splitlines()[-1] == f"new samples: reclust predict {out} NEW_DATA"
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
    assert len(said.out.splitlines()) == 8 and "needs the 120 samples" in said.err
    assert main(["predict", str(out / "model.reclust"), str(table), "--report", str(table)]) == 1
    assert "would be overwritten" in capsys.readouterr().err and table.read_text().startswith("name")


def test_fit_prints_json(tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs(n=60)[0])
    given = ["fit", str(tmp_path / "x.npy"), "-k", "4", "-o", str(tmp_path / "out"), "--json", "--pretrain-epochs", "0",
             "--epochs", "11", "--seed", "1", "--device", "cpu"]
    assert main(given) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert os.path.samefile(report["report"], tmp_path / "out" / "report.html") and report["samples"] == 60 and sum(report["sizes"]) == 60 and "accuracy" not in report


@pytest.mark.parametrize("given", [("--algorithm", "reclust", "--epochs", "5"), ("--algorithm", "dec", "--effort", "high"),
                                   ("--light", "removed", "--effort", "quick")])
def test_options_of_other_algorithms_are_refused(given, tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs(n=60)[0])
    assert main(["fit", str(tmp_path / "x.npy"), "-k", "4", "-o", str(tmp_path / "out"), *given]) == 1
    assert "cannot be used together" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are another matter there")
def test_a_closed_pipe_does_not_end_a_fit(table, tmp_path, monkeypatch):
    """Neither where it is printed to nor where its progress goes; that of a whole process is in test_main.py."""
    for stream in ("stdout", "stderr"):
        reader, writer = os.pipe()
        os.close(reader)
        monkeypatch.setattr(sys, stream, os.fdopen(writer, "w", buffering=1))
    monkeypatch.setattr(common, "PROGRESS_SECONDS", 0.0)
    assert main(["fit", str(table), "-k", "4", "--ids", "name", "--seed", "0", "--device", "cpu", "--pretrain-epochs", "1",
                 "--epochs", "11", "-o", str(tmp_path / "out")]) == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["labels.csv", "model.reclust", "report.html"]


def test_an_interrupted_end_is_written_again_and_other_files_stay(table, tmp_path, capsys):
    out = tmp_path / "out"
    given = ["fit", str(table), "-k", "4", "--effort", "quick", "--seed", "0", "--device", "cpu", "--ids", "name", "-o"]
    assert main([*given, str(out)]) == 0
    labels = (out / "labels.csv").read_text()
    (out / "model.reclust").unlink()  # written last
    assert main([*given, str(out)]) == 0 and (out / "labels.csv").read_text() == labels
    for name in ("labels.csv", "quick-labels.csv", "report.html"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("my notes")
        assert main([*given, str(tmp_path / name)]) == 1 and "exists: use another folder" in capsys.readouterr().err
        assert (tmp_path / name / name).read_text() == "my notes"


def test_a_first_answer_comes_early(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("reclust.estimators.reclust.EFFORTS", {"quick": Effort(1, 0, 20), "normal": Effort(1, 1, 20)})
    X = blobs(n=120)[0]
    np.save(tmp_path / "x.npy", X / np.linalg.norm(X, axis=1, keepdims=True))
    assert main(["fit", str(tmp_path / "x.npy"), "-k", "4", "-o", str(tmp_path / "out"), "--seed", "0", "--device", "cpu"]) == 0
    first, estimate, result, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("first answer, after") and "clusters of 30, 30, 30, 30" in first
    assert estimate.startswith("the fit takes about") and result.startswith("120 samples in 4 clusters of 30, 30, 30, 30, after")
    assert sorted(os.listdir(tmp_path / "out")) == ["labels.csv", "model.reclust", "report.html"]


def test_a_finished_model_is_not_overwritten(tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs(n=60)[0])
    given = ["fit", str(tmp_path / "x.npy"), "-k", "4", "-o", str(tmp_path / "out"), "--pretrain-epochs", "0", "--epochs", "11", "--device", "cpu"]
    assert main([*given, "--seed", "1"]) == 0
    before = (tmp_path / "out" / "model.reclust").read_bytes()
    assert main([*given, "--seed", "2"]) == 1 and "exists: use another folder" in capsys.readouterr().err
    assert (tmp_path / "out" / "model.reclust").read_bytes() == before
    assert main([*given, "--seed", "2", "--overwrite"]) == 0
    assert (tmp_path / "out" / "model.reclust").read_bytes() != before


def test_a_model_that_cannot_be_replaced_is_noticed_before_the_fit(table, tmp_path, monkeypatch, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.reclust").write_text("kept")
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("model.reclust"))
    assert main(["fit", str(table), "-k", "4", "--effort", "quick", "--overwrite", "-o", str(tmp_path / "out")]) == 1
    assert "model.reclust is read-only" in capsys.readouterr().err and os.listdir(tmp_path / "out") == ["model.reclust"]


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """Arguments of a short fit, in a folder with its data."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", blobs(n=60)[0] * np.arange(1, 1 + blobs(n=60)[0].shape[1]))
    return ["fit", "x.npy", "-o", "deep/out", "--device", "cpu", "--seed", "0", "--pretrain-epochs", "2", "--epochs", "11", "-k"]


def test_no_standardize_keeps_the_scales_of_features(quick, capsys):
    assert main([*quick, "4", "--no-standardize"]) == 0
    X, model = np.load("x.npy"), reclust.load("deep/out/model.reclust")
    same = reclust.IDEC(4, standardize=False, random_state=0, device="cpu", pretrain_epochs=2, epochs=11, preset="everyday").fit(X)
    assert not model.standardize and (model.preparation_.first(X) == X).all() and (model.labels_ == same.labels_).all()
    capsys.readouterr()
    assert main(["predict", "deep/out", "x.npy"]) == 0, "a folder is enough"
    with open("deep/out/labels.csv") as written:
        assert capsys.readouterr().out == written.read()
    assert main(["predict", "deep", "x.npy"]) == 1 and os.path.join("deep", "model.reclust") in capsys.readouterr().err


def test_two_fits_cannot_share_a_folder(quick, tmp_path, capsys):
    out = tmp_path / "deep" / "out"
    out.mkdir(parents=True)
    with exclusive_lock(out / "fit.lock", "held"):
        assert main([*quick, "4"]) == 1
        assert "Another `reclust fit` is writing to deep/out: wait for it" in capsys.readouterr().err.replace(os.sep, "/")
    assert os.listdir(out) == ["fit.lock"], "as after a kill"
    assert main([*quick, "4"]) == 0 and sorted(os.listdir(out)) == ["labels.csv", "model.reclust", "report.html"]


def test_drop_can_be_repeated():
    given = parser().parse_args(["fit", "x.csv", "-k", "3", "--drop", "a", "--drop", "b", "c"])
    assert given.drop == ["a", "b", "c"]


def test_progress_lines_without_a_terminal(quick, monkeypatch, capsys):
    monkeypatch.setattr(common, "PROGRESS_SECONDS", 0.0)
    assert main([*quick, "4"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 13 and said[1:3] == ["reclust: pretraining, epoch 2 of 2", "reclust: clustering, epoch 1 of 11"]


def test_the_time_left_does_not_count_what_came_before_the_first_step(monkeypatch, capsys):
    monkeypatch.setattr(common, "PROGRESS_SECONDS", 0.0)
    times = iter([0.0, 100.0, 102.0, 102.0, 102.0])
    monkeypatch.setattr(common.time, "monotonic", lambda: next(times))
    lines = common.ProgressLines()
    for done in (0.1, 0.3):
        lines(done)
    assert capsys.readouterr().err == "reclust: 30% done, about 7 s left\n"


@pytest.mark.filterwarnings("default::reclust.ReclustWarning")  # that the time is spent
def test_overwrite_replaces_the_checkpoint_of_another_run(tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs(n=60)[0])
    given = ["fit", str(tmp_path / "x.npy"), "-k", "4", "-o", str(tmp_path / "out"), "--pretrain-epochs", "0", "--seed", "1", "--device", "cpu"]
    assert main([*given, "--epochs", "400", "--minutes", "0.001"]) == 3
    assert main([*given, "--epochs", "11"]) == 1 and "with --overwrite" in capsys.readouterr().err
    assert main([*given, "--epochs", "11", "--overwrite"]) == 0
    assert reclust.load(tmp_path / "out" / "model.reclust").result_.trained_epochs("clustering") == 11


@pytest.mark.filterwarnings("default::reclust.ReclustWarning")
def test_overwrite_replaces_a_damaged_checkpoint(tmp_path, capsys):
    np.save(tmp_path / "x.npy", blobs(n=60)[0])
    given = ["fit", str(tmp_path / "x.npy"), "-k", "4", "-o", str(tmp_path / "out"), "--pretrain-epochs", "0", "--epochs", "11", "--seed", "1", "--device", "cpu"]
    for content in (b"", b"no checkpoint" * 10):
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out/fit.checkpoint").write_bytes(content)
        assert main(given) == 1 and re.search("fit.checkpoint is damaged .* as with --overwrite", capsys.readouterr().err)
        assert main([*given, "--overwrite"]) == 0 and not (tmp_path / "out/fit.checkpoint").exists()
        for file in (tmp_path / "out").iterdir():
            file.unlink()


@pytest.mark.filterwarnings("default::reclust.ReclustWarning")
def test_images_are_resized(tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    for i in range(12):
        image.fromarray(np.random.default_rng(i).integers(0, 256, (20, 20), dtype=np.uint8)).save(tmp_path / f"{i}.png")
    given = ["-k", "2", "-o", str(tmp_path / "out"), "--size", "9", "8", "--device", "cpu", "--seed", "0", "--preset", "everyday",
             "--epochs", "1", "--pretrain-epochs", "1"]
    assert main(["fit", str(tmp_path), *given]) == 0
    assert reclust.load(tmp_path / "out" / "model.reclust").preparation_.image_shape == (9, 8, 1)
    assert main(["predict", str(tmp_path / "out" / "model.reclust"), str(tmp_path)]) == 0
    assert main(["fit", "digits", *given]) == 1 and "--size cannot be used with the data set digits" in capsys.readouterr().err


@pytest.mark.filterwarnings("default::reclust.ReclustWarning")
def test_light_sets_the_lens(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 256, (40, 6, 6, 3), dtype=np.uint8))
    given = ["fit", str(tmp_path / "x.npy"), "-k", "2", "-o", str(tmp_path / "out"), "--device", "cpu", "--seed", "0", "--n-init", "1",
             "--pretrain-epochs", "1", "--epochs", "1", "--light"]
    assert main([*given, "removed"]) == 0
    assert reclust.load(tmp_path / "out" / "model.reclust").lens == Lens(16, "removed")
    assert main([*given, "kept", "--overwrite"]) == 0
    assert reclust.load(tmp_path / "out" / "model.reclust").lens == Lens(16)


@pytest.mark.filterwarnings("default::reclust.ReclustWarning")  # that one epoch is too few for a reset
@pytest.mark.parametrize(("more", "replicas"), [([], 10), (["--preset", "everyday"], 1)])
def test_images_default_to_the_best_preset(tmp_path, more, replicas):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((40, 6, 6)))
    command = ["fit", str(tmp_path / "x.npy"), "-k", "3", "-o", str(tmp_path / "out"), "--device", "cpu", "--seed", "0",
               "--pretrain-epochs", "1", "--epochs", "1", *more]
    assert main(command) == 0
    assert len(reclust.load(tmp_path / "out" / "model.reclust").replicas_) == replicas


def test_new_images_are_read_like_those_of_the_fit(tmp_path, monkeypatch, capsys):
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
        assert capsys.readouterr().out.startswith(f"id,cluster,confidence\n02.png,{expected[2]},") and model.predict(f"{folder}/02.png") == expected[2:3]


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
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


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
def test_inputs_are_not_overwritten(tmp_path, capsys):
    table = tmp_path / "in.csv"
    np.savetxt(table, blobs(n=60)[0], delimiter=",")
    options = ["-k", "3", "--epochs", "2", "--pretrain-epochs", "1", "--seed", "0"]
    assert main(["fit", str(table), *options, "-o", str(tmp_path / "out")]) == 0
    model = tmp_path / "out" / "model.reclust"
    named = tmp_path / "labels.csv"
    named.write_bytes(table.read_bytes())
    kept = {path: path.read_bytes() for path in (table, model, named)}
    for wrong in (["predict", str(model), str(table), "-o", str(table)], ["predict", str(model), str(table), "-o", str(model)],
                  ["fit", str(named), *options, "-o", str(tmp_path)], ["fit", str(table), *options, "-o", str(tmp_path / "o"), "--report", str(table)]):
        assert main(wrong) != 0 and "is an input" in capsys.readouterr().err
    assert main(["fit", str(table), *options, "-o", str(tmp_path)]) != 0 and "labels.csv" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in kept} == kept


def be_rank(rank, port, command):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      TORCHELASTIC_RUN_ID="7", TORCHELASTIC_RESTART_COUNT="0")
    warnings.simplefilter("ignore")  # pytest's filters make errors of them
    with open(f"printed{rank}", "w") as sys.stdout:
        assert main(command) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="ranks are forked, which Windows cannot do")
@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
def test_two_ranks_fit_what_one_process_fits(tmp_path, monkeypatch):
    """Forks of this process with what torchrun sets; torchrun itself is slow."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", blobs(n=120)[0])
    fit = ["fit", "x.npy", "-k", "4", "--seed", "0", "--pretrain-epochs", "1", "--epochs", "2", "--device", "cpu", "-o"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=be_rank, args=(rank, port, [*fit, "two"])) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(timeout=100)
        rank.kill()  # does nothing to one that has ended
    assert [rank.exitcode for rank in ranks] == [0, 0] and main([*fit, "one"]) == 0
    assert [open(f"printed{rank}").read().count("labels and model") for rank in range(2)] == [1, 0]
    assert open("one/labels.csv").read() == open("two/labels.csv").read()
    assert sorted(os.listdir("two")) == ["labels.csv", "model.reclust", "report.html"]


@pytest.mark.slow
@pytest.mark.parametrize("n_init", [1, 2])
def test_torchrun_fits_on_two_ranks_what_one_process_fits(tmp_path, n_init):
    np.save(tmp_path / "x.npy", blobs(n=120)[0])
    fit = ["reclust", "fit", "x.npy", "-k", "4", "--seed", "0", "--n-init", str(n_init), "--pretrain-epochs", "1",
           "--epochs", "2", "--device", "cpu", "-o"]
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    printed = [subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, env=environment, check=True, text=True,
                              capture_output=True, timeout=200).stdout for command in ([*fit, "one"], [*torchrun, *fit, "two"])]
    assert [text.count("labels and model") for text in printed] == [1, 1]  # the other rank is silent
    assert (tmp_path / "one" / "labels.csv").read_text() == (tmp_path / "two" / "labels.csv").read_text()
    assert sorted(os.listdir(tmp_path / "two")) == ["labels.csv", "model.reclust", "report.html"]
