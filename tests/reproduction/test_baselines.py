"""Baselines of the best preset: the command continues where it stopped, and UMAP with a mixture clusters."""

import json

import pytest
from studies.tiny import tiny_study

from reclust.studies import Store
from reclust.studies.baselines import baselines_of, run_baselines
from reclust.studies.execute import Conditions
from reproduction import baselines
from reproduction.baselines import UmapMixture, best_baselines, main


def test_baselines_continue_after_a_stop(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(baselines, "best_baselines", lambda: (baselines_of(tiny_study()),))
    run = ["--store", str(tmp_path / "s"), "--sets", "digits", "--device", "cpu", "--json"]
    for more, code, now, finished in ((["--minutes", "1e-9"], 3, 0, 0), (["--methods", "pixels"], 0, 2, 2), ([], 0, 2, 4)):
        assert main([*run, *more]) == code
        assert json.loads(capsys.readouterr().out) == [
            {"study": "baselines", "finished now": now, "finished": finished, "waiting": 4 - finished}]


def test_samples_with_and_without_light_are_different_runs():
    ordinary, colours = best_baselines()
    assert {run.key for *_, run in ordinary.runs()}.isdisjoint(run.key for *_, run in colours.runs())


@pytest.mark.slow
def test_umap_and_a_mixture_on_the_digits(tmp_path):
    pytest.importorskip("umap")
    study = tiny_study(seeds=(1,), protocol=tiny_study().protocol.mini())
    with Store(tmp_path / "store") as store:
        run_baselines(baselines_of(study, [UmapMixture()]), store, Conditions(work=str(tmp_path / "work")))
        assert store.runs("baselines")["acc"][0] > 0.7
