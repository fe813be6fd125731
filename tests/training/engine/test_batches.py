"""What an epoch visits, and which augmentations are refused."""

import numpy as np
import pytest
import torch
from support import blobs, small_settings

from reclust import Execution, Schedule, train

X = blobs(80)[0].astype(np.float32)
X, Y = blobs(n=60)
EXACT = Execution(device="cpu", precision="float64", executor="plain")


def settings(**changes):
    return small_settings(**{"pretraining": None, "intervention": None, **changes})


def test_the_last_short_batch_is_dropped_only_when_there_is_a_whole_one():
    sizes = []

    def spy(x, keys):
        if x.ndim == 4:  # (batches at once, replicas, B, features); before training it is tried on two samples
            sizes.extend([x.shape[2]] * len(x))
        return x

    for n, expected in ((60, [25] * 2), (20, [20])):
        sizes.clear()
        train(X[:n], small_settings(augment=spy, pretraining=None, intervention=None, clustering=Schedule(1, batch_size=25)), seeds=[0])
        assert sizes == expected


def test_every_epoch_has_its_own_order_and_every_view_its_own_draws():
    seen = []

    def record(x, keys):
        seen.append((x.clone(), keys.clone()))
        return x

    once = Schedule(epochs=3, batch_size=60, views=("augmented", "augmented"))
    train(X, settings(augment=record, clustering=once), seeds=[0], execution=EXACT)
    views = [one for one in seen if one[0].shape[-2] == 60]
    assert len(views) == 6
    assert len({key for _, keys in views for key in keys.flatten().tolist()}) == 6 * 60, "a view drew what another one had drawn"
    for earlier, later in ((0, 2), (2, 4)):
        one, other = views[earlier][0][0], views[later][0][0]
        assert not torch.equal(one, other)
        assert torch.equal(one.reshape(60, 12).sort(0).values, other.reshape(60, 12).sort(0).values)


def test_attention_without_dropout_and_seeds_put_back_are_no_draws():
    def forked(x, keys):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return x + torch.rand_like(x)

    before = torch.get_rng_state()
    train(X, small_settings(augment=forked), seeds=[1])
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(ValueError, match="The augmentation draws from torch's global generator"):
        train(X, small_settings(augment=lambda x, keys: x + torch.rand_like(x)), seeds=[1])
    assert torch.equal(before, torch.get_rng_state())
