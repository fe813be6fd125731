"""A study that is stopped, killed, or spread over processes ends with the same numbers as one that was left alone."""

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

from reclust import BRB, Curve, Every, Execution, ReclustWarning, Step, train, value
from reclust.data import DataError
from reclust.interventions import WhenSettled
from reclust.metrics import scores
from reclust.studies import Conditions, Store, StoreReader, Variant, execute, run
from reclust.studies.backends import base
from reclust.studies.execute import Outcome, attempt, pretrained
from reclust.training import phase
from reclust.training.phase import Phase
from studies.tiny import same_table, tiny_study


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The tiny study, run in one go."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with Store(folder / "store") as store:
        ran = run(tiny_study(), store, progress=False)
        assert (ran.finished, ran.waiting, ran.failures) == (24, 0, [])
        yield store


def test_runs_are_what_training_gives(undisturbed, tmp_path):
    group = next(group for group in tiny_study().groups() if group.pretraining is not None and len(group.runs) == 4)
    sample = group.protocol.sample(group.dataset, None)
    execution = Execution(precision=group.precision)
    start = train(sample.inputs, group.pretraining.settings, seeds=group.pretraining.seeds, execution=execution)
    result = train(sample.inputs, group.settings, seeds=group.seeds, start=start, execution=execution)
    for position, planned in enumerate(group.runs):
        np.testing.assert_array_equal(undisturbed.labels(planned.key), result.labels[position])
        np.testing.assert_array_equal(undisturbed.centers(planned.key), result.state["centers"][position])
        row = undisturbed.runs("tiny").set_index("run").loc[planned.key]
        expected = scores(sample.classes, result.labels[position])
        assert (row.acc, row.nmi, row.ari) == tuple(expected.values())
        assert row.seconds > 0
        assert undisturbed.settings(planned.key) == group.settings[position]
        history = undisturbed.history(planned.key)
        assert history["clustering"]["accuracy"].epochs.tolist() == [-1, 1, 2, 3], "every other epoch, and where BRB fired"
        assert history["pretraining"]["loss"].epochs.tolist() == [0, 1]
        provenance = undisturbed.provenance(planned.key)
        assert provenance["data"]["samples"] == 100 and provenance["torch"] and provenance["replicas"] == 4
        assert provenance["precision"] == "float32", "what was computed in, not what was asked for"


def test_finished_runs_are_skipped(undisturbed):
    ran = run(tiny_study(), undisturbed, progress=False)
    assert (ran.finished, ran.waiting) == (0, 0)


def test_what_a_killed_run_was_writing_is_cleared_away(undisturbed):
    left = undisturbed.path.with_name("store.work") / "pretrained" / ".half.0123.tmp"
    left.write_bytes(b"half")
    run(tiny_study(), undisturbed, progress=False)
    assert not left.exists()


def test_pretraining_is_trained_once_for_all(undisturbed):
    kept = list((undisturbed.path.with_name("store.work") / "pretrained").iterdir())
    assert len(kept) == 1, "two algorithms, three variants, one encoder"
    assert not list((undisturbed.path.with_name("store.work") / "checkpoints").iterdir())


def test_one_data_set_at_a_time_gives_the_same_groups(tmp_path):
    study = tiny_study(datasets=("digits", "usps"), algorithms=("dec",), pretrained=(False,))
    with Store(tmp_path / "store") as store:
        ran = run(study, store, datasets=["digits"], progress=False)
        assert (ran.finished, ran.waiting) == (6, 0)
        assert store.status("tiny")[0].waiting == 6, "the other set is planned and waits"
        with pytest.raises(ValueError, match="has no dataset 'mnist'; it has digits, usps"):
            run(study, store, datasets=["mnist"], progress=False)


def test_a_function_is_told_how_far_it_is(tmp_path):
    shares = []
    with Store(tmp_path / "store") as store:
        run(tiny_study(algorithms=("idec",), pretrained=(True,)), store, progress=shares.append)
    assert shares == sorted(shares) and shares[0] > 0 and shares[-1] == 1.0 and len(shares) > 4


def test_progress_moves_within_an_epoch(tmp_path, monkeypatch):
    """Two batches an epoch: each is told where enough time has passed, and all of them are the whole."""
    study = tiny_study(algorithms=("idec",), pretrained=(True,))
    told = {}
    for between in (1e9, 0.0):
        monkeypatch.setattr(phase, "BETWEEN_WORDS", between)
        shares = told[between] = []
        with Store(tmp_path / f"store{between}") as store:
            run(study, store, progress=shares.append)
    assert told[0.0] == sorted(told[0.0]) and told[0.0][-1] == pytest.approx(1)
    assert told[0.0][1::2] == pytest.approx(told[1e9]) and told[0.0][0] == pytest.approx(told[1e9][0] / 2)


def test_what_begins_is_logged(tmp_path, caplog):
    caplog.set_level("INFO", "reclust.studies.runner")
    study = tiny_study(algorithms=("dec",), pretrained=(False,), variants=(Variant("none"), Variant("too")))
    with Store(tmp_path / "store") as store:
        for _ in range(2):
            run(study, store, conditions=Conditions(work=str(tmp_path / "work"), device="cpu"), progress=False)
    assert caplog.messages == ["tiny on digits: 4 runs waiting in 1 group, computed on cpu"], "and nothing where nothing waits"


def test_variants_whose_intervention_never_fires_are_told_before_the_study_begins(tmp_path, monkeypatch):
    late = Variant("late", BRB(4)), Variant("settled", WhenSettled(BRB().steps, shortest=30))
    longer = Variant("late, longer", BRB(4), changes={"clustering": {"epochs": 5}})
    study = tiny_study(algorithms=("dec",), pretrained=(False,), variants=(*tiny_study().variants, *late, longer), seeds=(3,))
    monkeypatch.setattr(execute, "train", lambda *given, **named: 1 / 0)
    with Store(tmp_path / "s") as store:
        with pytest.warns(ReclustWarning, match=r"of tiny .* never fires in their epochs .*: 'late' \(4 epochs\), 'settled' \(4 epochs\)\. Train") as seen:
            run(study, store, progress=False)
        assert len(seen) == 1
        store.retry("tiny")
        run(study, store, progress=False, variants=("slow",))  # nothing is said of what is not asked for


def test_runs_whose_data_was_missing_are_tried_again_by_themselves(tmp_path):
    study = tiny_study(datasets=("mine",), algorithms=("dec",), pretrained=(False,), variants=(Variant("none"),), seeds=(3,),
                       protocol=replace(tiny_study().protocol, n_clusters=3))
    conditions = Conditions(work=str(tmp_path / "work"), data=str(tmp_path / "data"), device="cpu")
    with Store(tmp_path / "store.sqlite") as store:
        with pytest.raises(DataError, match="There is no folder .*data to look for data sets in"):
            run(study, store, conditions=conditions, progress=False)
        assert store.studies() == [] and not (tmp_path / "data").exists() and not (tmp_path / "work").exists()
        (tmp_path / "data").mkdir()
        ran = run(study, store, conditions=conditions, progress=False)
        assert ran.finished == 0 and "DataError" in ran.failures[0].error
        digits = load_digits()
        np.savez(tmp_path / "data" / "mine.npz", images=(15 * digits.images[:100]).astype(np.uint8), labels=digits.target[:100])
        ran = run(study, store, conditions=conditions, progress=False)
        assert (ran.finished, ran.failures) == (1, [])


def test_data_of_ones_own_that_changed_is_not_mixed(tmp_path):
    digits, study = load_digits(), tiny_study(datasets=("mine",), algorithms=("dec",), variants=(Variant("none"),), seeds=(3,),
                                              protocol=replace(tiny_study().protocol, n_clusters=3))

    def save(rows):
        np.savez(tmp_path / "mine.npz", images=(15 * digits.images[rows]).astype(np.uint8), labels=digits.target[rows])

    with Store(tmp_path / "store") as store:
        conditions = Conditions(work=str(tmp_path / "work"), data=str(tmp_path), device="cpu")
        np.savez(tmp_path / "mine.npz", images=np.zeros((9, 4, 4), np.uint8))
        assert "no labels" in run(study, store, conditions=conditions, progress=False).failures[0].error
        store.retry("tiny")
        save(slice(100))
        assert run(study, store, conditions=conditions, progress=False).finished == 2, "nothing was computed of what was mended"
        old = study.protocol.sample("mine", str(tmp_path))
        save(slice(100, 200))
        assert (study.protocol.sample("mine", str(tmp_path)).classes != old.classes).any(), "nor is it remembered"
        with pytest.raises(DataError, match=r"mine\.npz has changed since runs of mine"):
            run(replace(study, name="more", seeds=(4,)), store, conditions=conditions, progress=False)
        assert store.studies() == ["tiny"]
        save(slice(100))
        assert run(replace(study, name="more", seeds=(4,)), store, conditions=conditions, progress=False).finished == 2


def shrinking(by):
    """A step of one's own, as it stands in a file that is edited between two runs."""
    def shrink(self, target):
        target.centers.mul_(0.9)

    def edited(self, target):
        target.centers.mul_(0.5)

    return value(type("Shrinking", (Step,), {"__call__": shrink if by == 0.9 else edited, "__module__": __name__}))()


def test_results_of_edited_parts_are_not_mixed_unsaid(tmp_path):
    def study(by, **changes):
        variants = (Variant("none"), Variant("mine", Every(2, (shrinking(by),))))
        return tiny_study(algorithms=("dec",), pretrained=(False,), variants=variants, **changes)

    with Store(tmp_path / "store") as store:
        assert run(study(0.5), store, seeds=[], progress=False).finished == 0
        with warnings.catch_warnings():
            warnings.simplefilter("error", ReclustWarning)
            assert run(study(0.9), store, progress=False).finished == 4, "nothing was computed with the other one"
            assert run(study(0.9), store, progress=False).finished == 0
            assert run(study(0.5, name="other", seeds=(9,)), store, progress=False).finished == 2
        assert "Shrinking" in store.provenance(store.runs("tiny")["run"][0])["own parts"]
        with pytest.warns(ReclustWarning, match="code of Shrinking has changed since 4 finished runs of tiny.*another name"):
            run(study(0.5), store, progress=False)


def test_settings_of_the_machine_are_checked_before_anything_fails(tmp_path):
    with pytest.raises(ValueError, match="threads"):
        Conditions(work=str(tmp_path), threads=0)
    with Store(tmp_path / "store") as store:
        with pytest.raises((ValueError, RuntimeError), match="nonsense"):
            run(tiny_study(), store, conditions=Conditions(work=str(tmp_path / "work"), device="nonsense"), progress=False)
        assert store.failures() == []


def test_some_algorithms_and_starts_run_alone(tmp_path):
    study = tiny_study(algorithms=("dec", "dcn"), pretrained=(False, True), variants=(Variant("none"),))
    with Store(tmp_path / "store") as store:
        assert run(study, store, algorithms=["dcn"], pretrained=False, progress=False).waiting == 0
        assert set(store.finished("tiny", ("algorithm", "pretrained"), ())) == {("dcn", False)}
        with pytest.raises(ValueError, match="has no algorithm 'idec'; it has dec, dcn"):
            run(study, store, algorithms=["idec"], progress=False)
        with pytest.raises(ValueError, match="tiny has only runs with pretraining"):
            run(replace(study, pretrained=(True,)), store, pretrained=False, progress=False)


def test_some_variants_and_seeds_bring_what_trains_with_them(tmp_path):
    study = tiny_study(algorithms=("dec",), pretrained=(False,), largest_group=1)
    one, other = (variant.name for variant in study.variants[:2])
    seed = study.seeds[1]
    with Store(tmp_path / "store") as store:
        assert run(study, store, variants=[one], seeds=[seed], progress=False).finished == 1
        assert store.finished("tiny", ("variant", "seed"), ("run",))[0][:2] == (one, seed)
        stacked = replace(study, name="stacked", largest_group=100)
        assert run(stacked, store, variants=[one], progress=False).finished == 4, "two variants train together"
        with pytest.raises(ValueError, match=f"has no variant 'worse'; it has {one}, {other}"):
            run(study, store, variants=["worse"], progress=False)
        with pytest.raises(ValueError, match="has no seed 77"):
            run(study, store, seeds=[77], progress=False)


def test_time_that_is_up_leaves_work_to_go_on_with(undisturbed, tmp_path, monkeypatch):
    """Time is up at every third look, so no call gets further than an epoch or two; together they do the work."""
    looks = itertools.count(1)
    for module in (execute, base):
        monkeypatch.setattr(module, "over", lambda conditions: next(looks) % 3 == 0)
    study = tiny_study(algorithms=("dec",), pretrained=(True,))
    with Store(tmp_path / "store") as store:
        calls = 0
        while (ran := run(study, store, progress=False)).waiting:
            calls += 1
            assert calls < 50
        assert ran.failures == [] and calls > 3
        assert store.means("tiny") == [mean for mean in undisturbed.means("tiny")
                                       if mean["algorithm"] == "dec" and mean["pretrained"]]


def test_failures_are_kept_listed_and_retried(tmp_path, monkeypatch):
    bad = Variant("bad", changes={"clustering": {"lr": 1e30}})
    study = tiny_study(variants=(Variant("none"), bad), algorithms=("dcn",), pretrained=(False,))
    with Store(tmp_path / "store") as store:
        ran = run(study, store, progress=False)
        assert (ran.finished, ran.waiting, len(ran.failures)) == (2, 0, 2)
        assert {failure.variant for failure in ran.failures} == {"bad"}
        assert "TrainingFailed" in ran.failures[0].error and "Traceback" in ran.failures[0].error
        again = run(study, store, progress=False)
        assert (again.finished, len(again.failures)) == (0, 2), "failed runs are not tried again unless asked for"
        assert store.retry("tiny") == 2
        assert len(run(study, store, progress=False).failures) == 2


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes")
def test_a_step_that_fails_is_named_with_the_variants_it_took_along(tmp_path):
    def fail(self, target):
        raise RuntimeError("out of luck")

    failing = value(type("Failing", (Step,), {"__call__": fail, "__module__": __name__}))()
    study = tiny_study(variants=(Variant("none"), Variant("mine", Every(2, (failing,)))), algorithms=("dec",), pretrained=(False,))
    with Store(tmp_path / "store") as store:
        ran = run(study, store, progress=False)
        first, *_, last = ran.failures[0].error.strip().splitlines()
        assert len(ran.failures) == 4 and first == "Of the variants none, mine, which train stacked:"
        assert last == "Raised by the step Failing: RuntimeError: out of luck"


def test_what_training_did_not_cause_costs_no_checkpoint(tmp_path, monkeypatch):
    (group,) = tiny_study(algorithms=("dec",), pretrained=(False,), variants=(Variant("none"),)).groups()
    conditions = Conditions(work=str(tmp_path))
    assert isinstance(attempt(group, conditions, stop=iter([False, True, True, True]).__next__), execute.Stopped)
    (kept,) = (tmp_path / "checkpoints").iterdir()
    with monkeypatch.context() as patched:
        patched.setattr(execute, "train", lambda *_, **__: 1 / 0)
        assert "ZeroDivisionError" in attempt(group, conditions).error
    assert kept.is_file()
    assert isinstance(attempt(group, conditions), Outcome) and kept.is_file(), "until what came of it is stored"


def test_missing_data_is_a_failure_of_its_groups_alone(tmp_path, monkeypatch):
    study = tiny_study(datasets=("mine_1", "digits"), algorithms=("dec",), pretrained=(False,), variants=(Variant("none"),),
                       protocol=replace(tiny_study().protocol, n_clusters=3))
    with Store(tmp_path / "store") as store:
        ran = run(study, store, progress=False)
        assert ran.finished == 2 and {failure.dataset for failure in ran.failures} == {"mine_1"}
        assert "There is no set named 'mine_1'" in ran.failures[0].error


def test_pretraining_that_fails_is_tried_once(tmp_path, monkeypatch):
    tried = []

    def failing(pretraining, *given, **more):
        tried.append(pretraining.key)
        raise RuntimeError("on purpose")

    monkeypatch.setattr(execute, "pretrained", failing)
    with Store(tmp_path / "store") as store:
        ran = run(tiny_study(pretrained=(True,)), store, progress=False)
    assert len(ran.failures) == 12 and len(tried) == len(set(tried)) == 1


def test_a_replica_that_fails_does_not_take_the_others_along(tmp_path):
    group = tiny_study(algorithms=("dcn",), pretrained=(True,)).groups()[0]
    conditions = Conditions(work=str(tmp_path))
    start = pretrained(group.pretraining, conditions)
    for tensor in start.parameters.values():
        tensor[0] = float("nan")
    start.save(tmp_path / "pretrained" / f"{group.pretraining.key}.reclust")
    outcome = attempt(group, conditions)
    assert isinstance(outcome, Outcome)
    assert sorted(outcome.failed) == [i for i, seed in enumerate(group.seeds) if seed == start.seeds[0]]


def test_two_runners_do_not_share_a_store(tmp_path):
    study = tiny_study(algorithms=("dec",), pretrained=(False,), variants=(Variant("none"),))
    with Store(tmp_path / "store") as store:
        from reclust.studies.runner import _only_one

        with _only_one(tmp_path / "store.work", store.path), pytest.raises(RuntimeError, match="Another process"):
            run(study, store, progress=False)
        assert run(study, store, progress=False).finished == 2


@pytest.mark.parametrize("sent", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGTERM] * 2], ids=["ctrl-c", "sigterm", "sigterm twice"])
def test_a_signal_stops_with_a_checkpoint(sent, undisturbed, tmp_path, monkeypatch, capsys):
    """The first Ctrl-C, or SIGTERM, sent while a group trains, ends the call in good order; the next call ends the study."""
    study = tiny_study(algorithms=("dec",), pretrained=(True,))
    train, epochs = Phase._train, []

    def interrupted(self, epoch):
        epochs.append(epoch)
        if len(epochs) == 3:
            for number in sent:
                os.kill(os.getpid(), number)
        return train(self, epoch)

    with Store(tmp_path / "store") as store:
        before = signal.getsignal(sent[0])
        with monkeypatch.context() as patched:
            patched.setattr(Phase, "_train", interrupted)
            assert run(study, store, progress=False).waiting > 0
        assert signal.getsignal(sent[0]) is before and len(epochs) == 3
        assert capsys.readouterr().err.count("Stopping after this epoch, with a checkpoint") == 1
        assert list((tmp_path / "store.work" / "checkpoints").iterdir())
        ran = run(study, store, progress=False)
        assert (ran.waiting, ran.failures) == (0, [])
        assert store.means("tiny") == [mean for mean in undisturbed.means("tiny") if mean["algorithm"] == "dec" and mean["pretrained"]]


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_after_a_signal_stops_at_once(first, tmp_path, monkeypatch, capsys):
    def interrupted(self, epoch):
        os.kill(os.getpid(), first)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Phase, "_train", interrupted)
    with Store(tmp_path / "store") as store, pytest.raises(KeyboardInterrupt):
        run(tiny_study(), store, progress=False)
    assert "Ctrl-C now stops at once: what was computed since the last checkpoint is lost." in capsys.readouterr().err


def _run(path):
    with Store(path) as store:
        run(tiny_study(), store, progress=False)


@pytest.mark.skipif(sys.platform == "win32", reason="runners are forked, which Windows cannot do")
def test_a_killed_study_ends_like_an_undisturbed_one(undisturbed, tmp_path):
    fork = multiprocessing.get_context("fork")
    for wait in (0.2, 0.5, 0.9):
        killed = fork.Process(target=_run, args=(tmp_path / "store",))
        killed.start()
        time.sleep(wait)
        killed.kill()
        killed.join()
    with Store(tmp_path / "store") as store:
        finished = store.status("tiny")[0].finished
        ran = run(tiny_study(), store, progress=False)
        assert (ran.finished, ran.waiting, ran.failures) == (24 - finished, 0, [])
        assert same_table(store, undisturbed, "tiny")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="runners are forked, which Windows cannot do")
def test_random_kills_lose_no_run(undisturbed, tmp_path):
    """25 kills, at moments spread over all of a study; one that is done is followed by another."""
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


def test_losses_are_kept_where_something_was_evaluated():
    loss = Curve(np.arange(10), np.zeros((10, 1)))
    made = execute.thinned({"clustering": {"loss": loss, "accuracy": Curve(np.array([-1, 2, 9]), np.zeros((3, 1)))}}, 5)
    assert made["clustering"]["loss"].epochs.tolist() == [0, 2, 4, 9]


def test_a_run_has_its_share_of_the_pretraining(tmp_path):
    group, conditions = tiny_study(algorithms=("dcn",), pretrained=(True,)).groups()[0], Conditions(work=str(tmp_path))
    start, made = pretrained(group.pretraining, conditions), attempt(group, conditions)
    assert len(start) != len(group.runs)
    assert made.seconds["pretraining.training"] / len(group.runs) == pytest.approx(start.seconds["pretraining.training"] / len(start))
