"""A checkpoint belongs to one run and to no other, is whole or absent, and a run goes on from it as if it had never stopped."""

import errno
import functools
import itertools
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support import Stop, blobs, small_settings, stop_at

import reclust
from reclust import (
    BRB,
    Autoencoder,
    Checkpoint,
    DCNObjective,
    Evaluation,
    Execution,
    IDECObjective,
    KMeans,
    ReclustWarning,
    Schedule,
    train,
)
from reclust.training.context import Deadline
from reclust.utils import tensor_file

X, Y = blobs(n=60)
OTHER_RUN = "other settings, seeds, data, executor or code"


def stopped(checkpoint, settings, *, at=("clustering", 2), monitors=(), **given):
    """A run that dies at the end of an epoch, before that epoch's checkpoint is written."""
    with pytest.raises(Stop):
        train(X, settings, checkpoint=checkpoint, monitors=[*monitors, stop_at(*at)], **given)


def assert_equal(one, other):
    """Bit for bit, in all that a run learned and recorded."""
    for group in ("parameters", "buffers", "state"):
        assert all(torch.equal(getattr(one, group)[name], getattr(other, group)[name]) for name in getattr(one, group))
    assert (one.labels == other.labels).all() and one.failed == other.failed
    assert one.history.keys() == other.history.keys()
    for phase, columns in one.history.items():
        assert columns.keys() == other.history[phase].keys()
        for column, curve in columns.items():
            again = other.history[phase][column]
            assert curve.epochs.tolist() == again.epochs.tolist(), (phase, column)
            assert (curve.values == again.values).all(), (phase, column)


@pytest.fixture
def checkpoint(tmp_path):
    return Checkpoint(tmp_path / "run.ckpt", every=1)


# Whose checkpoint it is


def test_data_that_differ_in_one_row_are_other_data(checkpoint):
    many = np.random.default_rng(0).normal(size=(3000, 6))
    settings = small_settings(pretraining=None, intervention=None, clustering=Schedule(1))
    train(many, settings, seeds=[0], checkpoint=checkpoint)
    train(many.copy(), settings, seeds=[0], checkpoint=checkpoint)
    many[2] += 1
    with pytest.raises(ValueError, match=OTHER_RUN):
        train(many, settings, seeds=[0], checkpoint=checkpoint)


@pytest.mark.parametrize(("written", "read", "seeds"), [("vmap", "plain", (3, 1)), ("plain", "vmap", (7,))])
def test_an_executor_refuses_the_checkpoint_of_the_other(checkpoint, written, read, seeds):
    stopped(checkpoint, small_settings(), seeds=seeds, execution=Execution(executor=written))
    before = Path(checkpoint.path).read_bytes()
    with pytest.raises(ValueError, match=OTHER_RUN):
        train(X, small_settings(), seeds=seeds, checkpoint=checkpoint, execution=Execution(executor=read))
    assert Path(checkpoint.path).read_bytes() == before


def test_auto_goes_on_from_what_it_stands_for(checkpoint):
    stopped(checkpoint, small_settings(), seeds=(3, 1), execution=Execution(executor="vmap"))
    again = train(X, small_settings(), seeds=(3, 1), checkpoint=checkpoint)
    assert_equal(train(X, small_settings(), seeds=(3, 1)), again)


def test_another_start_is_another_run(checkpoint):
    settings = small_settings()
    first = train(X, replace(settings, clustering=None), seeds=(3, 1))
    second = train(X, replace(settings, clustering=None, pretraining=Schedule(1, batch_size=50)), seeds=(3, 1))
    stopped(checkpoint, settings, seeds=(3, 1), start=first)
    for start in (second, None):
        with pytest.raises(ValueError, match=OTHER_RUN):
            train(X, settings, seeds=(3, 1), start=start, checkpoint=checkpoint)
    assert_equal(train(X, settings, seeds=(3, 1), start=first), train(X, settings, seeds=(3, 1), start=first, checkpoint=checkpoint))


# Going on


@functools.cache
def uninterrupted(settings):
    return train(X, settings, seeds=(3, 1), monitors=[Evaluation(Y, every=2)])


@pytest.mark.parametrize(("intervention", "at"), [
    (None, ("clustering", 1)), (None, ("clustering", 4)), (BRB(3, method=KMeans(n_init=2)), ("pretraining", 1)), (BRB(3, method=KMeans(n_init=2)), ("clustering", 2)),
], ids=["between looks", "at a look", "while pretraining", "before a reset"])
def test_the_history_of_a_resumed_run_is_that_of_an_uninterrupted_one(checkpoint, intervention, at):
    settings = small_settings(intervention=intervention, clustering=Schedule(6, batch_size=50))
    whole = uninterrupted(settings)
    stopped(checkpoint, settings, at=at, seeds=(3, 1), monitors=[Evaluation(Y, every=2)])
    resumed = train(X, settings, seeds=(3, 1), monitors=[Evaluation(Y, every=2)], checkpoint=checkpoint)
    assert_equal(whole, resumed)
    around = [2] if intervention is not None else []  # a reset at 3 is seen from both sides
    assert whole.history["clustering"]["label_change"].epochs.tolist() == [1, *around, 3, 5]
    assert_equal(whole, train(X, settings, seeds=(3, 1), monitors=[Evaluation(Y, every=2)], checkpoint=checkpoint))  # from its end


def test_a_monitor_that_saw_more_than_the_checkpoint_goes_back_to_it(checkpoint):
    """A retry in the same process brings the monitor of the attempt before."""
    settings, evaluation = small_settings(intervention=None), Evaluation(Y, every=2)
    whole = uninterrupted(settings)
    stopped(checkpoint, settings, at=("clustering", 3), seeds=(3, 1), monitors=[evaluation])
    assert_equal(whole, train(X, settings, seeds=(3, 1), monitors=[evaluation], checkpoint=checkpoint))


def test_other_monitors_may_watch_a_resumed_run(checkpoint):
    stopped(checkpoint, small_settings(), seeds=(3, 1))
    scored = train(X, small_settings(), seeds=(3, 1), monitors=[Evaluation(Y)], checkpoint=checkpoint)
    assert scored.history["clustering"]["accuracy"].epochs.tolist() == [2, 3, 4]
    assert (scored.labels == train(X, small_settings(), seeds=(3, 1)).labels).all()


@pytest.mark.parametrize(("epochs", "objective"), [(1, IDECObjective()), (4, DCNObjective())], ids=["1", "4"])
def test_a_run_out_of_time_goes_on_to_the_result_of_an_uninterrupted_one(tmp_path, monkeypatch, epochs, objective):
    """Two epochs of pretraining and five of clustering, of which the budget allows so many together."""
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=100)
    settings = small_settings(objective=objective, representation=Autoencoder((16, 8), batch_norm=True))
    given = {"seeds": (3, 1), "checkpoint": checkpoint}
    asked = iter(range(100))
    with monkeypatch.context() as patched:
        patched.setattr(Deadline, "passed", property(lambda self: self._end is not None and next(asked) >= epochs))
        with pytest.warns(ReclustWarning, match="time budget was spent after"):
            early = train(X, settings, **given, monitors=[Evaluation(Y, every=2)], execution=Execution(time_budget=60))
    assert early.labels.shape == (2, len(X)), "out of time, there is a result all the same"
    assert_equal(uninterrupted(settings), train(X, settings, **given, monitors=[Evaluation(Y, every=2)]))


# Whole or absent


@pytest.fixture
def written(checkpoint):
    stopped(checkpoint, small_settings(), seeds=(3,))
    return checkpoint


def test_damaged_files_are_refused_and_left_as_they_are(written):
    written.previous.unlink()
    good = Path(written.path).read_bytes()
    header = 8 + int.from_bytes(good[:8], "little")
    damaged = [good[:cut] for cut in (0, header // 2, len(good) - 1)] + [good[:-3] + bytes([good[-3] ^ 1]) + good[-2:], b"garbage"]
    for content in damaged:
        Path(written.path).write_bytes(content)
        # No network is trained and nothing is returned: what was read so far is thrown away with the error.
        with pytest.raises(ValueError, match="damaged or not a reclust file"):
            train(X, small_settings(), seeds=(3,), checkpoint=written)
        assert Path(written.path).read_bytes() == content
    Path(written.path).write_bytes(good)
    assert_equal(train(X, small_settings(), seeds=(3,)), train(X, small_settings(), seeds=(3,), checkpoint=written))


def test_files_of_another_kind_are_refused(checkpoint):
    from safetensors.torch import save_file

    save_file({"weight": torch.zeros(3)}, checkpoint.path)
    with pytest.raises(ValueError, match="not a reclust file"):
        train(X, small_settings(), seeds=(3,), checkpoint=checkpoint)
    train(X, small_settings(pretraining=None, clustering=Schedule(0)), seeds=(3,)).save(checkpoint.path)
    with pytest.raises(ValueError, match="holds a result, not a checkpoint"):
        train(X, small_settings(), seeds=(3,), checkpoint=checkpoint)
    tensor_file.write(checkpoint.path, "checkpoint", {}, {"x": torch.zeros(1)})
    with pytest.raises(ValueError, match=OTHER_RUN):
        train(X, small_settings(), seeds=(3,), checkpoint=checkpoint)


def test_a_checkpoint_of_version_0_1_continues_or_is_refused_by_name(tmp_path):
    shutil.copy(Path(__file__).parents[1] / "version_0_1" / "run.checkpoint", tmp_path / "run.checkpoint")
    with pytest.raises(ValueError, match="run.checkpoint,? (was )?written by reclust 0.1"):
        train(X, small_settings(), seeds=(3,), checkpoint=tmp_path / "run.checkpoint")


def test_a_missing_folder_is_found_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr("reclust.training.phase.Phase.run", lambda *_: pytest.fail("training had begun"))
    with pytest.raises(FileNotFoundError, match="There is no folder .*absent to write run.ckpt into"):
        train(X, small_settings(), seeds=(3,), checkpoint=Checkpoint(tmp_path / "absent" / "run.ckpt"))


@pytest.mark.parametrize("broken", ["replace"])
def test_a_write_that_fails_leaves_the_last_checkpoint_whole(written, monkeypatch, broken):
    good = Path(written.path).read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(f"reclust.utils.files.os.{broken}", full)
        with pytest.raises(OSError, match="No space left"):
            train(X, small_settings(), seeds=(3,), checkpoint=written)
    assert Path(written.path).read_bytes() == good
    assert sorted(os.listdir(Path(written.path).parent)) == ["run.ckpt", "run.ckpt.previous"], "no temporary file is left behind"
    assert_equal(train(X, small_settings(), seeds=(3,)), train(X, small_settings(), seeds=(3,), checkpoint=written))


def test_a_folder_that_may_not_be_written_is_found_before_training(written, monkeypatch):
    good = Path(written.path).read_bytes()
    monkeypatch.setattr("reclust.training.phase.Phase.run", lambda *_: pytest.fail("training had begun"))
    monkeypatch.setattr("reclust.utils.files.os.access", lambda *_: False)
    with pytest.raises(PermissionError, match="read-only: choose another"):
        train(X, small_settings(), seeds=(3,), checkpoint=written)
    assert Path(written.path).read_bytes() == good


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_keeps_its_checkpoint(written):
    folder, good = Path(written.path).parent, Path(written.path).read_bytes()
    folder.chmod(0o555)
    try:
        with pytest.raises(PermissionError, match="read-only: choose another"):
            train(X, small_settings(), seeds=(3,), checkpoint=written)
    finally:
        folder.chmod(0o755)
    assert Path(written.path).read_bytes() == good and sorted(os.listdir(folder)) == ["run.ckpt", "run.ckpt.previous"]


def test_a_resumed_run_has_spent_the_time_of_an_uninterrupted_one(tmp_path, monkeypatch):
    monkeypatch.setattr(reclust.utils.device.time, "perf_counter", itertools.count().__next__)
    given = small_settings(intervention=None, pretraining=None)
    whole = train(X, given, seeds=[0]).seconds
    with pytest.raises(Stop):
        train(X, given, seeds=[0], checkpoint=Checkpoint(tmp_path / "c", every=1), monitors=[stop_at("clustering", 3)])
    resumed = train(X, given, seeds=[0], checkpoint=Checkpoint(tmp_path / "c", every=1)).seconds
    assert resumed["clustering.training"] == whole["clustering.training"] > 0


def test_a_resumed_run_that_nobody_looked_at_before_compares_with_where_it_goes_on(tmp_path):
    given, checkpoint = small_settings(pretraining=None, intervention=None), Checkpoint(tmp_path / "c", every=1)
    with pytest.raises(Stop):
        train(X, given, seeds=[0], checkpoint=checkpoint, monitors=[stop_at("clustering", 3)])
    late = train(X, given, seeds=[0], checkpoint=checkpoint, monitors=[Evaluation(Y)]).history["clustering"]["label_change"]
    whole = train(X, given, seeds=[0], monitors=[Evaluation(Y)]).history["clustering"]["label_change"]
    assert late.epochs.tolist() == whole.epochs[-2:].tolist() and (late.values == whole.values[-2:]).all()


def test_what_follows_a_damaged_checkpoint_keeps_no_damaged_one_as_the_state_before(tmp_path):
    given, checkpoint = small_settings(pretraining=None, intervention=None), Checkpoint(tmp_path / "c", every=1)
    with pytest.raises(Stop):
        train(X, given, seeds=[0], checkpoint=checkpoint, monitors=[stop_at("clustering", 3)])
    Path(checkpoint.path).write_bytes(b"damaged")
    with pytest.warns(ReclustWarning, match="Continuing from the previous state"):
        checkpoint.read()
    assert not checkpoint.previous.exists() and checkpoint.read()[0]["epoch"] == 2


def test_a_checkpoint_removes_its_own_files_and_no_others(tmp_path):
    for name in ("run1", "run1.previous", "run1.warmup", "run1.0-5.previous", "run10", "run10.previous",
                 "run1_results.csv", "run1.csv", "run1.0"):
        (tmp_path / name).write_text("")
    Checkpoint(tmp_path / "run1").remove()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "run1.0", "run1.csv", "run10", "run10.previous", "run1_results.csv"]


@pytest.mark.parametrize("seconds", [{"clustering.training": "x"}, {"clustering.training": None}, [1], 3])
def test_times_of_another_type_are_refused(tmp_path, seconds):
    given, checkpoint = small_settings(pretraining=None, intervention=None), Checkpoint(tmp_path / "c", every=1)
    with pytest.raises(Stop):
        train(X, given, seeds=[0], checkpoint=checkpoint, monitors=[stop_at("clustering", 3)])
    header, tensors = tensor_file.read(checkpoint.path, "checkpoint")
    del header["format"], header["kind"]
    tensor_file.write(checkpoint.path, "checkpoint", {**header, "seconds": seconds}, tensors)
    with pytest.raises(ValueError, match="c cannot be used"):
        train(X, given, seeds=[0], checkpoint=checkpoint)
