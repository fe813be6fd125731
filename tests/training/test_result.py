"""A result survives its file, and its replicas can be selected."""

from dataclasses import replace

import pytest
import torch
from support import blobs, small_settings

from reclust import (
    Evaluation,
    Result,
    Schedule,
    train,
)

X, Y = blobs(n=60)
SEEDS = (3, 1, 4)


def gap(one, other, replica=slice(None), of_other=slice(None)):
    pairs = [(getattr(one, group), getattr(other, group)) for group in ("parameters", "state", "buffers")]
    return max((a[name][replica].double() - b[name][of_other].double()).abs().max().item() for a, b in pairs for name in a)


def settings(**changes):
    return small_settings(**{"pretraining": None, "intervention": None, **changes})


def test_a_result_survives_its_file(tmp_path):
    result = train(X, small_settings(), seeds=SEEDS, monitors=[Evaluation(Y)])
    result.save(tmp_path / "result.reclust")
    loaded = Result.load(tmp_path / "result.reclust")
    assert loaded.settings == result.settings and loaded.seeds == result.seeds and loaded.seconds == result.seconds
    assert gap(result, loaded) == 0 and (result.labels == loaded.labels).all()
    assert (loaded.history["clustering"]["accuracy"].values == result.history["clustering"]["accuracy"].values).all()
    z = [one.model(1).embed(torch.from_numpy(X).float()) for one in (result, loaded)]
    assert torch.equal(*z)


def test_replicas_of_a_result_can_be_selected():
    result = train(X, settings(clustering=Schedule(epochs=1)), seeds=[1, 2, 3, 4])
    assert result.only(slice(1, 3)).seeds == (2, 3) and result.only(-1).seeds == (4,)
    odd = result.only(slice(None, None, 2))
    assert odd.seeds == (1, 3) and (odd.labels == result.labels[::2]).all()


def test_shapes_of_samples_without_size_are_refused(tmp_path):
    X, _ = blobs(n=20)
    result = train(X, small_settings(), seeds=[0])
    replace(result, sample_shape=(-1,)).save(tmp_path / "x")
    with pytest.raises(ValueError, match="sample_shape must be an integer of at least 1"):
        Result.load(tmp_path / "x")
