"""A study that is stopped or killed ends with the same numbers as an undisturbed one."""

import importlib
import itertools
import multiprocessing
import os
import random
import signal
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from reclust import BRB, Every, ReclustWarning, Step, value
from reclust.data import DataError
from reclust.interventions import WhenSettled
from reclust.studies import Conditions, Store, StoreReader, Variant, execute, run
from reclust.utils.files import exclusive_lock
from studies.tiny import same_table, tiny_study

ONE_RUN = {"algorithms": ("dec",), "pretrained": (False,), "variants": (Variant("none"),), "seeds": (3,)}
STUDY = tiny_study(algorithms=("dec",), pretrained=(True,))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("undisturbed") / "store") as store:
        ran = run(STUDY, store, progress=False)
        assert (ran.finished, ran.waiting, ran.failures) == (6, 0, [])
        yield store


def test_finished_runs_are_skipped_and_the_work_folder_is_tidied(undisturbed):
    work = undisturbed.path.with_name("store.work")
    ran = run(STUDY, undisturbed, progress=False)
    assert (ran.finished, ran.waiting) == (0, 0)
    assert len(list((work / "pretrained").iterdir())) == 1, "three variants, one encoder"
    assert not list((work / "checkpoints").iterdir())


def test_some_of_a_study_can_run_alone(tmp_path):
    study = tiny_study(datasets=("digits", "usps"), variants=tiny_study().variants[:2])
    with Store(tmp_path / "store") as store:
        ran = run(study, store, datasets=["digits"], algorithms=["dcn"], pretrained=False, variants=["none"], seeds=[4], progress=False)
        assert (ran.finished, ran.waiting) == (4, 0), "and the variant and seed that train stacked with it"
        assert set(store.finished("tiny", ("dataset", "algorithm", "pretrained"), ())) == {("digits", "dcn", False)}
        assert store.status("tiny")[0].waiting == len(study.planned()) - 4, "the others are planned and wait"
        for given, message in (({"datasets": ["mnist"]}, "has no dataset 'mnist'; it has digits, usps"), ({"seeds": [77]}, "has no seed 77"),
                               ({"algorithms": ["idec"]}, "has no algorithm 'idec'"), ({"variants": ["worse"]}, "has no variant 'worse'")):
            with pytest.raises(ValueError, match=message):
                run(study, store, progress=False, **given)


def test_a_callback_receives_the_progress(tmp_path):
    shares = []
    with Store(tmp_path / "store") as store:
        run(tiny_study(**{**ONE_RUN, "pretrained": (True,)}), store, progress=shares.append)
    assert shares == sorted(shares) and shares[0] > 0 and shares[-1] == pytest.approx(1) and len(shares) > 4


def test_the_start_is_logged(tmp_path, caplog):
    caplog.set_level("INFO", "reclust.studies.runner")
    with Store(tmp_path / "store") as store:
        for _ in range(2):
            run(tiny_study(**{**ONE_RUN, "seeds": (3, 4)}), store, conditions=Conditions(work=str(tmp_path / "work"), device="cpu"), progress=False)
    assert caplog.messages == ["tiny on digits: 2 runs waiting in 1 group, computed on cpu"], "and nothing if nothing waits"


def test_interventions_that_never_fire_are_reported_first(tmp_path, monkeypatch):
    late = Variant("late", BRB(4)), Variant("settled", WhenSettled(BRB().steps, shortest=30))
    longer = Variant("late, longer", BRB(4), changes={"clustering": {"epochs": 5}})
    study = tiny_study(**{**ONE_RUN, "variants": (*tiny_study().variants, *late, longer)})
    monkeypatch.setattr(execute, "train", lambda *given, **named: 1 / 0)
    with Store(tmp_path / "s") as store:
        with pytest.warns(ReclustWarning, match=r"of tiny .* never fires in their epochs: 'late' \(4 epochs\), 'settled' \(4 epochs\)\. Train") as seen:
            run(study, store, progress=False)
        assert len(seen) == 1
        store.retry("tiny")
        run(study, store, progress=False, variants=("slow",))  # no warning about the others


def save_digits(path, rows):
    digits = load_digits()
    np.savez(path, images=(15 * digits.images[rows]).astype(np.uint8), labels=digits.target[rows])


def test_runs_whose_data_was_missing_are_tried_again(tmp_path):
    study = tiny_study(**ONE_RUN, datasets=("mine", "digits"), protocol=replace(tiny_study().protocol, n_clusters=3))
    where = {"work": str(tmp_path / "work"), "data": str(tmp_path / "data"), "device": "cpu"}
    with pytest.raises(DataError):
        Conditions(**where)
    (tmp_path / "data").mkdir()
    conditions = Conditions(**where)
    with Store(tmp_path / "store.sqlite") as store:
        ran = run(study, store, conditions=conditions, progress=False)
        assert ran.finished == 1 and {failure.dataset for failure in ran.failures} == {"mine"} and "DataError" in ran.failures[0].error
        save_digits(tmp_path / "data" / "mine.npz", slice(100))
        ran = run(study, store, conditions=conditions, progress=False)
        assert (ran.finished, ran.failures) == (1, [])


def test_user_data_that_changed_is_not_mixed(tmp_path):
    study = tiny_study(**ONE_RUN, datasets=("mine",), protocol=replace(tiny_study().protocol, n_clusters=3))
    more = replace(study, name="more", seeds=(4,))
    with Store(tmp_path / "store") as store:
        conditions = Conditions(work=str(tmp_path / "work"), data=str(tmp_path), device="cpu")
        np.savez(tmp_path / "mine.npz", images=np.zeros((9, 4, 4), np.uint8))
        assert "no labels" in run(study, store, conditions=conditions, progress=False).failures[0].error
        store.retry("tiny")
        save_digits(tmp_path / "mine.npz", slice(100))
        assert run(study, store, conditions=conditions, progress=False).finished == 1, "the unusable file does not count"
        old = study.protocol.sample("mine", str(tmp_path))
        save_digits(tmp_path / "mine.npz", slice(100, 200))
        assert (study.protocol.sample("mine", str(tmp_path)).classes != old.classes).any(), "samples are read again"
        with pytest.raises(DataError, match=r"mine\.npz has changed since runs of mine"):
            run(more, store, conditions=conditions, progress=False)
        assert store.studies() == ["tiny"]
        save_digits(tmp_path / "mine.npz", slice(100))
        assert run(more, store, conditions=conditions, progress=False).finished == 1


def test_edited_steps_are_reported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def study(factor, **changes):
        """Use a step from a file that is edited between two runs."""
        (tmp_path / "shrinking_step.py").write_text(
            "from reclust import Step, value\n\n@value\nclass Shrinking(Step):\n"
            f"    def __call__(self, target):\n        target.centers.mul_({factor})\n")
        step = importlib.reload(importlib.import_module("shrinking_step")).Shrinking()
        return tiny_study(**{**ONE_RUN, "variants": (Variant("mine", Every(2, (step,))),), **changes})

    with Store(tmp_path / "store") as store:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ReclustWarning)
            assert run(study(0.5), store, seeds=[], progress=False).finished == 0
            assert run(study(0.9), store, progress=False).finished == 1, "nothing was computed with the other one"
            assert run(study(0.9), store, progress=False).finished == 0
            assert run(study(0.5, name="other", seeds=(9,)), store, progress=False).finished == 1
        with pytest.warns(ReclustWarning, match="code of Shrinking has changed since 1 finished runs of tiny"):
            run(study(0.5), store, progress=False)
        with pytest.warns(ReclustWarning, match="planned differently before: 1 finished runs"):
            run(study(0.9, seeds=(8,)), store, seeds=[], progress=False)


def test_an_unknown_device_is_refused_before_anything_is_planned(tmp_path):
    with Store(tmp_path / "store") as store:
        with pytest.raises((ValueError, RuntimeError), match="nonsense"):
            run(tiny_study(), store, conditions=Conditions(work=str(tmp_path / "work"), device="nonsense"), progress=False)
        assert store.studies() == []


def test_a_study_continues_when_time_is_up(undisturbed, tmp_path, monkeypatch):
    """Time is up at every third check, so that no call gets further than an epoch or two."""
    checks = itertools.count(1)
    monkeypatch.setattr(Conditions, "out_of_time", property(lambda self: next(checks) % 3 == 0))
    with Store(tmp_path / "store") as store:
        calls = 0
        while (ran := run(STUDY, store, progress=False)).waiting:
            calls += 1
            assert calls < 50
        assert ran.failures == [] and calls > 3
        assert same_table(store, undisturbed, "tiny")


def test_failures_are_stored_and_retried(tmp_path):
    bad = Variant("bad", changes={"clustering": {"lr": 1e30}})
    study = tiny_study(**{**ONE_RUN, "algorithms": ("dcn",), "variants": (Variant("none"), bad)})
    with Store(tmp_path / "store") as store:
        ran = run(study, store, progress=False)
        assert (ran.finished, ran.waiting, [failure.variant for failure in ran.failures]) == (1, 0, ["bad"])
        assert "TrainingFailed" in ran.failures[0].error and "Traceback" in ran.failures[0].error
        again = run(study, store, progress=False)
        assert (again.finished, len(again.failures)) == (0, 1), "not tried again unless requested"
        assert store.retry("tiny") == 1
        assert len(run(study, store, progress=False).failures) == 1


def test_a_failure_names_the_stacked_variants(tmp_path):
    def fail(self, target):
        raise RuntimeError("out of luck")

    failing = value(type("Failing", (Step,), {"__call__": fail, "__module__": __name__}))()
    study = tiny_study(**{**ONE_RUN, "variants": (Variant("none"), Variant("mine", Every(2, (failing,))))})
    with Store(tmp_path / "store") as store:
        ran = run(study, store, progress=False)
        first, *_, last = ran.failures[0].error.strip().splitlines()
        assert len(ran.failures) == 2 and first == "Variants trained stacked: none, mine"
        assert last == "RuntimeError: out of luck"


def test_two_runners_do_not_share_a_store(tmp_path):
    (tmp_path / "store.work").mkdir()
    with Store(tmp_path / "store") as store, exclusive_lock(tmp_path / "store.work/lock", ""):
        with pytest.raises(RuntimeError, match="Another process"):
            run(STUDY, store, progress=False)


@pytest.mark.parametrize("sent", [[signal.SIGINT], [signal.SIGTERM] * 2], ids=["ctrl-c", "sigterm twice"])
def test_a_signal_stops_with_a_checkpoint(sent, undisturbed, tmp_path, capsys):
    shares = []

    def interrupt(share):
        shares.append(share)
        if len(shares) == 3:
            for number in sent:
                os.kill(os.getpid(), number)

    with Store(tmp_path / "store") as store:
        before = signal.getsignal(sent[0])
        assert run(STUDY, store, progress=interrupt).waiting > 0
        assert signal.getsignal(sent[0]) is before
        assert capsys.readouterr().err.count("Stopping after this epoch, with a checkpoint") == 1
        assert list((tmp_path / "store.work" / "checkpoints").iterdir())
        ran = run(STUDY, store, progress=False)
        assert (ran.waiting, ran.failures) == (0, [])
        assert same_table(store, undisturbed, "tiny")


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_after_a_signal_stops_at_once(first, tmp_path, capsys):
    def interrupt(share):
        os.kill(os.getpid(), first)
        os.kill(os.getpid(), signal.SIGINT)

    with Store(tmp_path / "store") as store, pytest.raises(KeyboardInterrupt):
        run(STUDY, store, progress=interrupt)
    assert "Ctrl-C again stops at once" in capsys.readouterr().err


def _run(path):
    with Store(path) as store:
        run(STUDY, store, progress=False)


@pytest.mark.skipif(sys.platform == "win32", reason="runners are forked, which Windows cannot do")
def test_a_killed_study_ends_like_an_undisturbed_one(undisturbed, tmp_path):
    fork = multiprocessing.get_context("fork")
    for wait in (0.2, 0.6):
        killed = fork.Process(target=_run, args=(tmp_path / "store",))
        killed.start()
        time.sleep(wait)
        killed.kill()
        killed.join()
    with Store(tmp_path / "store") as store:
        finished = sum(status.finished for status in store.status())
        ran = run(STUDY, store, progress=False)
        assert (ran.finished, ran.waiting, ran.failures) == (6 - finished, 0, [])
        assert same_table(store, undisturbed, "tiny")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="runners are forked, which Windows cannot do")
def test_random_kills_lose_no_run(undisturbed, tmp_path):
    """25 kills at moments spread over all of a study; a study that finished is followed by another."""
    fork, seed, killed = multiprocessing.get_context("fork"), random.randrange(2**31), 0
    chance, begun = random.Random(seed), time.monotonic()
    _run(tmp_path / "timed")
    span = time.monotonic() - begun
    for number in itertools.count():
        if killed >= 25:
            break
        while True:
            runner = fork.Process(target=_run, args=(tmp_path / f"store{number}",))
            runner.start()
            runner.join(chance.uniform(0, span))
            runner.kill()
            runner.join()
            if runner.exitcode == 0:
                break
            assert runner.exitcode == -signal.SIGKILL, seed
            killed += 1
        with StoreReader(tmp_path / f"store{number}") as store:
            assert same_table(store, undisturbed, "tiny"), seed
            assert not list((tmp_path / f"store{number}.work" / "checkpoints").iterdir()), seed
