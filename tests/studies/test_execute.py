"""One group, from its data to its outcome."""

from types import SimpleNamespace

import numpy as np
import pytest

from reclust import Execution, train
from reclust.metrics import scores
from reclust.studies import Conditions, Outcome, Store, Variant, execute, run
from reclust.studies.execute import attempt, pretrained
from studies.tiny import tiny_study


def test_runs_are_what_training_gives(tmp_path):
    study = tiny_study(algorithms=("dcn",), pretrained=(True,), variants=tiny_study().variants[:2])
    (group,) = study.groups()
    sample = group.protocol.sample(group.dataset, None)
    execution = Execution(precision=group.precision)
    start = train(sample.inputs, group.pretraining.settings, seeds=group.pretraining.seeds, execution=execution)
    result = train(sample.inputs, group.settings, seeds=group.seeds, start=start, execution=execution)
    with Store(tmp_path / "store") as store:
        run(study, store, progress=False)
        rows = store.runs("tiny").set_index("run")
        for position, planned in enumerate(group.runs):
            np.testing.assert_array_equal(store.labels(planned.key), result.labels[position])
            np.testing.assert_array_equal(store.array(planned.key, "centers"), result.state["centers"][position])
            row = rows.loc[planned.key]
            assert (row.acc, row.nmi, row.ari) == tuple(scores(sample.classes, result.labels[position]).values())
            assert row.seconds > 0 and store.settings(planned.key) == group.settings[position]
            history = store.history(planned.key)
            assert history["clustering"]["accuracy"].epochs.tolist() == [-1, 1, 2, 3], "every other epoch, and where BRB fired"
            assert history["pretraining"]["loss"].epochs.tolist() == [0, 1]
            provenance = store.provenance(planned.key)
            assert provenance["data"]["samples"] == 100 and provenance["torch"] and provenance["replicas"] == 4
            assert provenance["precision"] == "float32", "the actual one, not 'auto'"
    made = attempt(group, Conditions(work=str(tmp_path / "store.work")))
    encoders = pretrained(group.pretraining, Conditions(work=str(tmp_path / "store.work")))
    part = "pretraining.training"
    assert made.seconds[part] / len(group.runs) == pytest.approx(encoders.seconds[part] / len(encoders)), "a fair share"


def test_errors_outside_of_training_keep_the_checkpoint(tmp_path, monkeypatch):
    (group,) = tiny_study(algorithms=("dec",), pretrained=(False,), variants=(Variant("none"),)).groups()
    conditions = Conditions(work=str(tmp_path))
    assert isinstance(attempt(group, conditions, stop=iter([False, True, True, True]).__next__), execute.Stopped)
    (kept,) = (tmp_path / "checkpoints").iterdir()
    with monkeypatch.context() as patched:
        patched.setattr(execute, "train", lambda *_, **__: 1 / 0)
        assert "ZeroDivisionError" in attempt(group, conditions).error
    assert kept.is_file()
    assert isinstance(attempt(group, conditions), Outcome) and kept.is_file(), "until the outcome is stored"


def test_pretraining_that_fails_is_tried_once(tmp_path, monkeypatch):
    tried = []

    def failing(pretraining, *given, **more):
        tried.append(pretraining.key)
        raise RuntimeError("on purpose")

    monkeypatch.setattr(execute, "pretrained", failing)
    with Store(tmp_path / "store") as store:
        ran = run(tiny_study(pretrained=(True,)), store, progress=False)
    assert len(ran.failures) == 12 and len(tried) == 1


def test_a_replica_that_fails_leaves_the_others_alone(tmp_path):
    group = tiny_study(algorithms=("dcn",), pretrained=(True,)).groups()[0]
    conditions = Conditions(work=str(tmp_path))
    start = pretrained(group.pretraining, conditions)
    for tensor in start.parameters.values():
        tensor[0] = float("nan")
    start.save(tmp_path / "pretrained" / f"{group.pretraining.key}.reclust")
    outcome = attempt(group, conditions)
    assert isinstance(outcome, Outcome)
    assert sorted(outcome.failed) == [i for i, seed in enumerate(group.seeds) if seed == start.seeds[0]]


def test_reported_costs_add_up_to_the_phases(tmp_path):
    reported = []
    watch = execute._Watch(Conditions(work=str(tmp_path)), lambda: False, reported.append, 5.0, 12.0, 7.0)
    watch.report(watch.phase_costs.pop(0))
    watch(SimpleNamespace(moment="start", epochs=3, epoch=0))  # a checkpoint brought the first of three epochs
    watch(SimpleNamespace(moment="epoch", epochs=3, epoch=1))
    watch(SimpleNamespace(moment="epoch", epochs=3, epoch=2))
    watch(SimpleNamespace(moment="start", epochs=1, epoch=-1))
    watch(SimpleNamespace(moment="epoch", epochs=1, epoch=0))
    assert reported == [5.0, 4.0, 4.0, 4.0, 7.0]
