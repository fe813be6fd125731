"""Fields of values: numpy numbers pass, anything else that looks like a number is refused by the name of the field."""

from dataclasses import replace

import numpy as np
import pytest
from support import blobs, small_settings

import reclust
from reclust import (
    BRB,
    IDEC,
    Autoencoder,
    Checkpoint,
    DCNObjective,
    DECObjective,
    Evaluation,
    Every,
    Execution,
    IDECObjective,
    KMeans,
    Recluster,
    Result,
    Schedule,
    SoftReset,
    train,
)  # fmt: skip
from reclust.ensemble.selection import Consistency
from reclust.utils.values import from_json, to_json

X, Y = blobs(n=60)
LR = np.float32(1e-3)


def estimator(whole, real, **changes):
    """A small model whose every number is made by `whole` or `real`."""
    return IDEC(**{
        "n_clusters": whole(4), "n_init": whole(2), "pretrain_epochs": whole(2), "epochs": whole(3), "batch_size": whole(20), "lr": real(LR),
        "random_state": whole(0), "representation": Autoencoder((whole(16), whole(8)), embedding=whole(5)), "device": "cpu",
        "intervention": BRB(whole(2), keep=real(np.float32(0.75)), method=KMeans(n_init=whole(2))), "objective": IDECObjective(real(0.25)), **changes})


@pytest.mark.parametrize("kinds", [(np.uint8, np.float32)], ids=str)
def test_numpy_numbers_fit_save_load_and_equal_plain_ones(tmp_path, kinds):
    model, expected = estimator(*kinds).fit(X, Y), estimator(int, float).fit(X, Y)
    assert (model.labels_ == expected.labels_).all() and (model.transform(X) == expected.transform(X)).all()
    assert model.result_.settings == expected.result_.settings and model.result_.seeds == expected.result_.seeds
    model.save(tmp_path / "m.reclust")
    loaded = reclust.load(tmp_path / "m.reclust")
    assert loaded.get_params() == model.get_params() and loaded.result_.settings == expected.result_.settings
    assert (loaded.predict(X) == expected.labels_).all() and (loaded.predict_proba(X) == expected.predict_proba(X)).all()


def test_numpy_seeds_are_seeds(tmp_path):
    settings = small_settings(intervention=None, clustering=Schedule(np.int16(2), lr=LR, batch_size=np.int64(20)))
    plain = train(X, replace(settings, clustering=Schedule(2, lr=float(LR), batch_size=20)), seeds=[0, 1])
    given = train(X, settings, seeds=np.arange(2), monitors=[Evaluation(Y, every=np.int64(2))])
    assert given.seeds == plain.seeds == (0, 1) and all(type(seed) is int for seed in given.seeds)
    assert (given.labels == plain.labels).all() and given.settings == plain.settings
    given.save(tmp_path / "r.reclust")
    loaded = Result.load(tmp_path / "r.reclust")
    assert loaded.seeds == (0, 1) and loaded.settings == plain.settings


def test_values_made_of_numpy_numbers_are_written_as_plain_ones():
    one = Every(np.int64(3), (SoftReset(np.float64(0.5)), Recluster(KMeans(np.int8(2), np.int32(7)), subsample=np.uint16(50))))
    other = Every(3, (SoftReset(0.5), Recluster(KMeans(2, 7), subsample=50)))
    assert one == other == from_json(to_json(one)) and to_json(one) == to_json(other)


WHOLE = {  # parameter -> what makes something with this number, before any training
    "n_clusters": lambda given: estimator(int, float, n_clusters=given).fit(X),
    "n_init": lambda given: estimator(int, float, n_init=given).fit(X),
    "pretrain_epochs": lambda given: estimator(int, float, pretrain_epochs=given).fit(X),
    "epochs": lambda given: estimator(int, float, epochs=given).fit(X),
    "batch_size": lambda given: estimator(int, float, batch_size=given).fit(X),
    "interval": lambda given: BRB(given),
    "each seed": lambda given: train(X, small_settings(), seeds=[given]),
    "n_clusters of Settings": lambda given: small_settings(n_clusters=given),
    "epochs of Schedule": lambda given: Schedule(given),
    "batch_size of Schedule": lambda given: Schedule(1, batch_size=given),
    "warmup_epochs": lambda given: Schedule(1, warmup_epochs=given),
    "each number in hidden": lambda given: Autoencoder((given,)),
    "embedding": lambda given: Autoencoder(embedding=given),
    "subsample": lambda given: Recluster(subsample=given),
    "max_iter": lambda given: KMeans(max_iter=given),
    "every": lambda given: Checkpoint("x", every=given),
    "every of Evaluation": lambda given: Evaluation(every=given),
    "repeats": lambda given: Consistency(repeats=given),
}
REAL = {
    "lr": lambda given: estimator(int, float, lr=given).fit(X),
    "time_budget": lambda given: estimator(int, float, time_budget=given).fit(X),
    "lr of Schedule": lambda given: Schedule(1, lr=given),
    "clip_norm": lambda given: Schedule(1, clip_norm=given),
    "time_budget of Execution": lambda given: Execution(time_budget=given),
    "tol": lambda given: KMeans(tol=given),
    "keep": lambda given: SoftReset(given),
    "keep of a block": lambda given: SoftReset({"layer1": given}),
    "weight": lambda given: DECObjective(weight=given),
    "weight of IDEC": lambda given: IDECObjective(given),
    "weight of DCN": lambda given: DCNObjective(weight=given),
    "representation_weight": lambda given: DECObjective(representation_weight=given),
}


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr("reclust.training.phase.Phase.run", lambda *_: pytest.fail("training had begun"))


@pytest.mark.parametrize("given", [3.0, np.float64(3), 2.5, True, np.bool_(True), "3", -1, [3]], ids=repr)
def test_what_is_no_whole_number_is_refused_by_name(no_training, given):
    for name, make in WHOLE.items():
        with pytest.raises(ValueError, match=f"^{name.partition(' of ')[0]} must be an integer of at least"):
            make(given)


@pytest.mark.parametrize("given", [True, np.bool_(False), "0.5", "much", [0.5], 1j], ids=repr)
def test_what_is_no_number_is_refused_by_name(no_training, given):
    for name, make in REAL.items():
        with pytest.raises(ValueError, match=f"^{name.partition(' of ')[0]} must be a number, got"):
            make(given)


def test_integer_weights_equal_float_ones():
    settings = [small_settings(objective=DECObjective(weight=weight)) for weight in (1, 0.5, np.float32(0.5))]
    assert settings[0] == small_settings(objective=DECObjective(weight=1.0)) and settings[1] == settings[2]
