"""Values survive JSON, and nothing but values does."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from reclust import BRB, Every, KaimingNoise, Recluster, SoftReset, Step, value
from reclust.estimators import presets
from reclust.utils.values import from_json, same, to_json


@pytest.mark.parametrize("thing", [
    BRB(7, 0.3), SoftReset({"mlp": 0.7, "block4": 0.9}), Every(3, (SoftReset(0.5, blocks=("layer1",), noise=KaimingNoise()), Recluster())),
    presets.paper("usps", "dcn"), presets.paper("gtsrb", "dec", pretrained=False, intervention="none"), None, (1, 2.5, "x", True),
], ids=repr)
def test_there_and_back(thing):
    assert from_json(json.loads(json.dumps(to_json(thing)))) == thing


def test_other_objects_are_refused_with_a_remedy():
    with pytest.raises(TypeError, match="decorate the class with @reclust.value"):
        to_json(object())


@pytest.mark.parametrize("data", [{"kind": "os.system", "fields": {}}, {"kind": "Popen", "fields": {"args": ["ls"]}}])
def test_only_registered_kinds_are_ever_created(data):
    with pytest.raises(ValueError):
        from_json(data)


def test_names_are_unique():
    with pytest.raises(ValueError, match="exists already"):
        @value
        class SoftReset:  # noqa: F811
            pass


def essential_json(thing):
    return to_json(thing, defaults=False)


def test_what_is_essential_holds_only_what_differs_from_the_defaults():
    assert essential_json(SoftReset()) == {"kind": "SoftReset", "fields": {}}
    assert essential_json((SoftReset(0.5), 3)) == [{"kind": "SoftReset", "fields": {"keep": 0.5}}, 3]
    every = essential_json(Every(3, (Recluster(rows="first"),)))
    assert every["fields"] == {"interval": 3, "steps": [{"kind": "Recluster", "fields": {"rows": "first"}}]}
    assert from_json(every) == Every(3, (Recluster(rows="first"),))
    with pytest.raises(TypeError):
        essential_json(object())


@dataclasses.dataclass(frozen=True)
class Anchor(Step):
    near: object

    def __call__(self, target):
        pass


@pytest.mark.parametrize("make", [np.array, torch.tensor], ids=["array", "tensor"])
def test_things_that_hold_tensors_are_equal_by_what_these_hold(make):
    one, equal, other, longer = (Every(2, (SoftReset(), Anchor(make(held)))) for held in ([1, 2], [1, 2], [1, 3], [1, 2, 3]))
    assert same(one, one) and same(one, equal) and not same(one, other) and not same(one, longer) and not same(one, None)
    assert same([make([1, 2]), 1], [make([1, 2]), 1]) and not same((make([1, 2]),), [make([1, 2])])
