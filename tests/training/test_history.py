"""Histories survive files."""

from support import blobs, small_settings

import reclust
from reclust import Result

X, _ = blobs(n=60)


def test_columns_of_the_history_with_a_slash_survive_a_file(tmp_path):
    columns = ("loss/of/something", "loss/of", "a b", "ümlaut/", "/first")
    result = reclust.train(X, small_settings(), seeds=(0, 1), monitors=[lambda snapshot: {name: [snapshot.epoch, 1.0] for name in columns}])
    result.save(tmp_path / "r.reclust")
    loaded = Result.load(tmp_path / "r.reclust")
    assert {phase: set(curves) for phase, curves in loaded.history.items()} == {phase: set(curves) for phase, curves in result.history.items()}
    for phase, curves in result.history.items():
        for name, curve in curves.items():
            assert (loaded.history[phase][name].epochs == curve.epochs).all() and (loaded.history[phase][name].values == curve.values).all()
