"""Whatever stops a run, nothing is lost: kills at every moment, full disks, Ctrl-C, damaged files."""

import os
import random
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import blobs, small_settings
from training.test_checkpoint import assert_equal

import reclust
from reclust import (
    IDEC,
    Autoencoder,
    Checkpoint,
    ReclustWarning,
    Schedule,
    SelfLabel,
    SelfLabeling,
    self_label,
    train,
)
from reclust.cli import main
from reclust.training.checkpoint import TrainingState
from reclust.utils import tensor_file
from reclust.utils.values import from_json

pytestmark = pytest.mark.filterwarnings("default::reclust.ReclustWarning")  # so short fits lose clusters, and say so

X, Y = blobs(n=60)
SETTINGS = small_settings(pretraining=Schedule(2, batch_size=60, views=("clean",)), clustering=Schedule(5, batch_size=60))
LABELING = SelfLabel(0.5, warmup=Schedule(2, batch_size=30, views=("clean",), network="frozen"),
                     training=Schedule(3, batch_size=30, views=("clean",), first_view="decides"))


def small(**changes):
    given = {"representation": Autoencoder((16, 8)), "pretrain_epochs": 2, "epochs": 5, "batch_size": 30, "device": "cpu", "intervention": None}
    return IDEC(4, **{**given, **changes})


class Killed(BaseException):
    """Stands for `kill -9`: nobody catches it."""


def whole_run(seeds, checkpoint):
    """Pretraining, clustering with resets, self-labeling."""
    after = None if checkpoint is None else checkpoint.named("labeling")
    clustered = train(X, SETTINGS, seeds=seeds, checkpoint=checkpoint)
    return clustered, self_label(X, clustered, LABELING, checkpoint=after)


def test_a_run_killed_at_any_operation_on_files_ends_as_if_it_had_not_been(tmp_path, monkeypatch, seeds=(3, 1)):
    """Each life is killed a few operations after the checkpoint that it began from, so all of them are met."""
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1)
    operations = {name: getattr(os, name) for name in ("replace", "fsync", "link")}
    left, lives = [0], 0

    def counted(name):
        def operate(*given):
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return operations[name](*given)
        return operate

    for name in operations:
        monkeypatch.setattr(f"reclust.utils.tensor_file.os.{name}", counted(name))
    while True:
        lives += 1
        left[0] = 1 + 5 * lives % 6
        try:
            found = whole_run(seeds, checkpoint)
            break
        except Killed:
            assert lives < 60
    assert lives > 10
    left[0] = -1
    for one, other in zip(found, whole_run(seeds, None), strict=True):
        assert_equal(one, other)


def interrupted(checkpoint, settings=SETTINGS):
    def monitor(snapshot):
        if (snapshot.phase, snapshot.epoch, snapshot.moment) == ("clustering", 3, "epoch"):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(X, settings, seeds=(3,), checkpoint=checkpoint, monitors=[monitor])


@pytest.mark.parametrize("every", [1, 100])
def test_ctrl_c_is_raised_once_and_the_run_can_be_resumed(tmp_path, every):
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=every)
    interrupted(checkpoint)
    assert checkpoint.exists()
    assert_equal(train(X, SETTINGS, seeds=(3,)), train(X, SETTINGS, seeds=(3,), checkpoint=checkpoint))


# Damage


def damage(path):
    content = bytearray(Path(path).read_bytes())
    content[len(content) // 2] ^= 16  # of a number in the middle, which no format but a checksum would notice
    Path(path).write_bytes(content)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1)
    interrupted(checkpoint)
    damage(checkpoint.path)
    with pytest.warns(ReclustWarning, match="checksum does not match. Continuing from the previous state"):
        resumed = train(X, SETTINGS, seeds=(3,), checkpoint=checkpoint)
    assert_equal(train(X, SETTINGS, seeds=(3,)), resumed)


def test_two_damaged_checkpoints_are_refused_and_left_as_they_are(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1)
    interrupted(checkpoint)
    both = (Path(checkpoint.path), checkpoint.previous)
    for path in both:
        damage(path)
    before = [path.read_bytes() for path in both]
    with pytest.raises(ValueError, match="damaged"):
        train(X, SETTINGS, seeds=(3,), checkpoint=checkpoint)
    assert [path.read_bytes() for path in both] == before


def test_a_removed_checkpoint_is_a_new_start(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1)
    interrupted(checkpoint)
    Path(checkpoint.path).unlink()
    train(X, replace(SETTINGS, pretraining=None), seeds=(3,), checkpoint=checkpoint)


def rewritten(path, kind, change):
    """The same file, sealed again after a change: what a hostile hand can do and an accident cannot."""
    header, tensors = tensor_file.read(path, kind)
    given = {name: entry for name, entry in header.items() if name not in ("format", "kind")}
    change(given, tensors)
    tensor_file.write(path, kind, given, tensors)


@pytest.mark.parametrize(("change", "message"), [
    (lambda h, t: h.update(version="0.0.1"), "was written by reclust 0.0.1, this is .*: continue with that version"),
    (lambda h, t: h.update(identity="x"), "other settings, seeds, data, executor or code"),
    (lambda h, t: h.pop("seconds"), "cannot be used: KeyError"),
])
def test_a_checkpoint_that_does_not_fit_is_refused_before_training(tmp_path, monkeypatch, change, message):
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1)
    interrupted(checkpoint)
    rewritten(checkpoint.path, "checkpoint", change)
    monkeypatch.setattr("reclust.training.phase.Phase.run", lambda *_: pytest.fail("training had begun"))
    with pytest.raises(ValueError, match=message):
        train(X, SETTINGS, seeds=(3,), checkpoint=checkpoint)


# Disks


def test_a_disk_that_is_full_stops_the_run_and_leaves_the_last_state_whole(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1)
    interrupted(checkpoint)
    good, before = Path(checkpoint.path).read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(good) // 2, before[1]))  # a write that ends midway, as on a full disk
    try:
        with pytest.raises(OSError, match="run.ckpt could not be written, its old content is intact: File too large"):
            train(X, SETTINGS, seeds=(3,), checkpoint=checkpoint)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert Path(checkpoint.path).read_bytes() == good
    assert sorted(os.listdir(tmp_path)) == ["run.ckpt", "run.ckpt.previous"]
    assert_equal(train(X, SETTINGS, seeds=(3,)), train(X, SETTINGS, seeds=(3,), checkpoint=checkpoint))


def test_a_file_system_without_links_keeps_two_states_as_well(tmp_path, monkeypatch):
    def unable(*_):
        raise OSError(95, "Operation not supported")
    monkeypatch.setattr("reclust.utils.tensor_file.os.link", unable)
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1)
    interrupted(checkpoint)
    damage(checkpoint.path)
    with pytest.warns(ReclustWarning, match="previous state"):
        train(X, SETTINGS, seeds=(3,), checkpoint=checkpoint)


# Estimators and the command line


@pytest.mark.parametrize(("given", "file"), [("states", "states/fit.checkpoint"), ("run.ckpt", "run.ckpt")])
def test_estimators_take_a_folder_or_a_file(tmp_path, given, file):
    model = small(random_state=0).fit(X, checkpoint=str(tmp_path / given), every=2)
    header, _ = tensor_file.read(tmp_path / file, "checkpoint")
    assert (header["phase"], header["epoch"], list(from_json(header["settings"]))) == ("clustering", 5, [model.result_.settings[0]])
    assert (small(random_state=0).fit(X, checkpoint=tmp_path / given).labels_ == model.labels_).all()
    with pytest.raises(ValueError, match="other settings"):
        small(random_state=0, epochs=6).fit(X, checkpoint=tmp_path / given)
    third = SelfLabeling(model, epochs=2, warmup_epochs=3, device="cpu", threshold=0.1)
    labels = third.fit(X, checkpoint=tmp_path / "third", every=1).labels_
    assert (tmp_path / "third" / "fit.checkpoint").is_file() and (third.fit(X, checkpoint=tmp_path / "third").labels_ == labels).all()


def test_without_a_random_state_an_interrupted_fit_goes_on_with_its_own_seeds(tmp_path, monkeypatch):
    def die(self, *given):
        write(self, *given)
        if (self.phase, self.epoch) == ("clustering", 2):
            raise Killed
    write = TrainingState.write
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(TrainingState, "write", die)
        small(n_init=2).fit(X, checkpoint=tmp_path, every=1)
    seeds = Checkpoint.at(tmp_path).seeds()
    assert [replica.seed for replica in small(n_init=2).fit(X, checkpoint=tmp_path).replicas_] == seeds


def test_the_command_line_goes_on_after_a_kill_and_cleans_up(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr("reclust.cli.fit.CHECKPOINT_SECONDS", 0.0)
    command = ["fit", str(tmp_path / "x.npy"), "-k", "4", "--device", "cpu", "--pretrain-epochs", "2", "--epochs", "12", "--seed", "0", "-o"]
    assert main([*command, str(tmp_path / "whole")]) == 0
    assert sorted(os.listdir(tmp_path / "whole")) == ["labels.csv", "model.reclust", "report.html"]
    written = []

    def stop(self, *given):
        write(self, *given)
        written.append(self.epoch)
        if (self.phase, self.epoch) == ("clustering", 10):
            raise KeyboardInterrupt
    write = TrainingState.write
    with monkeypatch.context() as patched:
        patched.setattr(TrainingState, "write", stop)
        assert main([*command, str(tmp_path / "out")]) == 130
    assert "run the same command again" in capsys.readouterr().err and (tmp_path / "out" / "fit.checkpoint").is_file()
    assert main([*command, str(tmp_path / "out")]) == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["labels.csv", "model.reclust", "report.html"] and written == [*range(3), *range(11)]
    assert (tmp_path / "out" / "labels.csv").read_text() == (tmp_path / "whole" / "labels.csv").read_text()


class Budget:
    """Spends time by the epoch, so that a test decides when it is over."""

    def __init__(self, epochs):
        self.epochs = epochs

    @property
    def passed(self):
        self.epochs -= 1
        return self.epochs < 0


@pytest.mark.parametrize("epochs", [2, 5], ids=["in pretraining", "in clustering"])
def test_the_command_line_goes_on_after_its_minutes(tmp_path, monkeypatch, capsys, epochs):
    np.save(tmp_path / "x.npy", X)
    command = ["fit", str(tmp_path / "x.npy"), "-k", "4", "--device", "cpu", "--pretrain-epochs", "3", "--epochs", "3", "--seed", "0", "-o"]
    assert main([*command, str(tmp_path / "whole")]) == 0
    with monkeypatch.context() as patched:
        patched.setattr("reclust.training.run.Deadline", lambda seconds: Budget(epochs))
        assert main([*command, str(tmp_path / "out"), "--minutes", "1"]) == 3
    assert "run the same command again" in capsys.readouterr().err
    assert {"fit.checkpoint", "labels.csv", "model.reclust"} <= set(os.listdir(tmp_path / "out"))
    assert len(reclust.load(tmp_path / "out" / "model.reclust").labels_) == 60
    assert main([*command, str(tmp_path / "out"), "--minutes", "9"]) == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["labels.csv", "model.reclust", "report.html"]
    assert (tmp_path / "out" / "labels.csv").read_text() == (tmp_path / "whole" / "labels.csv").read_text()


# Real kills


KILLS = """
import os, random, signal, sys, time, warnings
import torch
torch.set_num_threads(1)
sys.path[:0] = {path!r}
import training.test_recorder as t
warnings.simplefilter("ignore")
from reclust import Checkpoint, Result
folder, kills, seeds, seed = sys.argv[1], int(sys.argv[2]), tuple(map(int, sys.argv[3].split(","))), int(sys.argv[4])
rng, killed, runs = random.Random(seed), 0, 0
begun = time.monotonic()
whole = t.whole_run(seeds, None)
span = time.monotonic() - begun
while killed < kills:
    runs += 1
    checkpoint = Checkpoint(os.path.join(folder, f"{{runs}}.ckpt"), every=1)
    while True:
        child = os.fork()
        if child == 0:
            clustered, labeled = t.whole_run(seeds, checkpoint)
            clustered.save(f"{{checkpoint.path}}.clustered")
            labeled.save(f"{{checkpoint.path}}.labeled")
            os._exit(0)
        time.sleep(rng.uniform(0, span))
        os.kill(child, signal.SIGKILL)  # does nothing to one that is done already
        if os.WIFEXITED(os.waitpid(child, 0)[1]):
            break
        killed += 1
    for one, name in zip(whole, ("clustered", "labeled"), strict=True):
        t.assert_equal(one, Result.load(f"{{checkpoint.path}}.{{name}}"))
print(runs, killed)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seeds", ["3", "3,1"], ids=["alone", "stacked"])
def test_random_kills_lose_nothing(tmp_path, seeds):
    """Five kills each: in pretraining, clustering, around resets, in self-labeling and while files are written."""
    path = [str(Path(reclust.__file__).parents[1]), str(Path(__file__).parents[1])]
    given = [sys.executable, "-c", KILLS.format(path=path), str(tmp_path), "5", seeds, str(random.randrange(2**31))]
    done = subprocess.run(given, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, (given[-1], done.stderr[-3000:])
