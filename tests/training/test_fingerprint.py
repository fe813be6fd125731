"""Everything that decides a result changes fingerprints; that they are equal in every process is in test_imports.py."""

import dataclasses
import functools

import numpy as np
import pytest
import torch
from support import Stop, blobs, small_settings, stop_at
from torch import nn

from reclust import Checkpoint, OwnAutoencoder, Schedule, train
from reclust.training.checkpoint import UnusableCheckpoint
from reclust.training.fingerprint import code_of, fingerprint

X = blobs(n=60)[0]

CUSTOM = """
import dataclasses, functools
import torch
from torch import nn
from reclust import IDECObjective, OwnAutoencoder, Settings, Step

def jitter(x, keys, scale=0.1):
    return x + scale

class Shift:
    def __init__(self, by):
        self.by = by
    def __call__(self, x, keys):
        return x + self.by

@dataclasses.dataclass(frozen=True)
class Pull(Step):
    share: float = 0.1
    def __call__(self, target):
        target.centers.mul_(self.share)

class Encoder(nn.Module):
    def __init__(self, scale=1.0, act=torch.relu):
        super().__init__()
        self.linear, self.scale, self.act = nn.Linear(12, 4), scale, act
    def forward(self, x):
        return self.act(self.linear(x)) * self.scale

def things():
    settings = Settings(n_clusters=3, objective=IDECObjective(), augment=jitter)
    return [settings, functools.partial(jitter, scale=0.3), Shift(0.5).__call__, Pull(0.5), torch.arange(5000.0),
            frozenset(map(str, range(20))), OwnAutoencoder(Encoder(), nn.Linear(4, 12))]
"""


def custom(tmp_path, monkeypatch, name, text=CUSTOM):
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return __import__(name)


@pytest.mark.parametrize(("before", "after", "changed"), [
    ("mul_(self.share)", "mul_(-self.share)", [3]), ("return x + scale", "return x - scale", [0, 1]), ("* self.scale", "/ self.scale", [6]),
    ("scale=1.0", "scale=5.0", [6]), ("return x + self.by", "return x - self.by", [2]),
])
def test_edited_code_has_another_fingerprint(tmp_path, monkeypatch, before, after, changed):
    name = f"edited_{abs(hash(before))}"
    modules = [custom(tmp_path, monkeypatch, f"{name}_{i}", text) for i, text in enumerate((CUSTOM, CUSTOM.replace(before, after)))]
    first, second = ([str(fingerprint(thing)).replace(module.__name__, "") for thing in module.things()] for module in modules)
    assert [i for i, (one, other) in enumerate(zip(first, second, strict=True)) if one != other] == changed


def test_different_things_have_different_fingerprints():
    one, two = np.arange(5000.0), np.arange(5000.0)
    two[2500] = -1  # where the printed form of an array has dots

    def enclosing(scale):
        return lambda x, keys: x * scale

    def jitter(x, keys, scale=0.1):
        return x + scale

    pairs = [
        (functools.partial(jitter, scale=1), functools.partial(jitter, scale=2)), (enclosing(1), enclosing(2)), (one, two),
        (torch.from_numpy(one), torch.from_numpy(two)), (torch.zeros(2, 3), torch.zeros(3, 2)), (torch.zeros(2), torch.zeros(2).double()),
        (nn.ReLU(), nn.Tanh()), (Schedule(3), Schedule(4)), ((1, 2), (1, 3)), ({"a": 1}, {"a": 2}), (torch.relu, torch.tanh),
    ]
    for a, b in pairs:
        assert fingerprint(a) == fingerprint(a) and fingerprint(a) != fingerprint(b), (a, b)


def test_code_is_hashed_for_custom_classes_only(tmp_path, monkeypatch):
    module = custom(tmp_path, monkeypatch, "custom_code")
    assert code_of(module.things()[0]) == {} and list(code_of([module.Pull()])) == ["Pull"]


def own(seed, weights):
    torch.manual_seed(seed)
    return OwnAutoencoder(nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 4)), nn.Linear(4, 12), weights=weights)


def test_given_weights_are_part_of_a_run_and_fresh_weights_are_not(tmp_path):
    assert fingerprint(own(0, "given")) != fingerprint(own(1, "given"))
    assert fingerprint(own(0, "given")) == fingerprint(own(0, "given")) != fingerprint(own(0, "fresh"))
    checkpoint = Checkpoint(tmp_path / "run", every=1)
    with pytest.raises(Stop):
        train(X, small_settings(representation=own(0, "fresh")), seeds=(3,), checkpoint=checkpoint, monitors=[stop_at("clustering", 1)])
    with pytest.raises(UnusableCheckpoint, match="other settings, seeds, data, executor or code"):
        train(X, small_settings(representation=own(0, "given")), seeds=(3,), checkpoint=checkpoint)
    # A script that is started again builds its modules again, with other random weights.
    again = train(X, small_settings(representation=own(1, "fresh")), seeds=(3,), checkpoint=checkpoint)
    assert (again.labels == train(X, small_settings(representation=own(2, "fresh")), seeds=(3,)).labels).all()


def test_a_run_from_weights_in_bfloat16_has_checkpoints(tmp_path):
    start = train(X, small_settings(clustering=None), seeds=(0,))
    start = dataclasses.replace(start, parameters={name: stack.bfloat16() for name, stack in start.parameters.items()})
    whole = train(X, small_settings(), seeds=(0,), start=start)
    checkpoint = Checkpoint(tmp_path / "run", every=1)
    with pytest.raises(Stop):
        train(X, small_settings(), seeds=(0,), start=start, checkpoint=checkpoint, monitors=[stop_at("clustering", 2)])
    assert (train(X, small_settings(), seeds=(0,), start=start, checkpoint=checkpoint).labels == whole.labels).all()
