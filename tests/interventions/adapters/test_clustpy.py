"""BRB in ClustPy's loops. ClustPy lives in an environment of its own: `make test-clustpy` runs this there."""

import contextlib
import io

import numpy as np
import pytest
import torch
from support import blobs

from reclust import BRB, KMeans
from reclust.interventions.adapters.clustpy import intervene

X = blobs(n=90, features=6, k=3)[0].astype(np.float32)
EPOCHS = 6


@pytest.fixture(scope="module")
def deep():
    pytest.importorskip("clustpy", reason="ClustPy is not installed here: make test-clustpy has an environment for it")
    # ClustPy imports torchvision, which does not load beside every build of torch for want of operators; names are enough.
    names = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):  # where torchvision is whole they exist
            names.define(f"{operator}(Tensor x) -> Tensor")
    import clustpy.deep

    yield clustpy.deep


def model(deep, name):
    return getattr(deep, name)(n_clusters=3, batch_size=30, embedding_size=3, pretrain_epochs=2, clustering_epochs=EPOCHS,
                               neural_network=(deep.neural_networks.FeedforwardAutoencoder, {"layers": [6, 8, 5, 3]}),
                               device=torch.device("cpu"), random_state=1)


def fitted(estimator):
    with contextlib.redirect_stderr(io.StringIO()):
        return estimator.fit(X)


def learned(estimator):
    centers = estimator.dcn_cluster_centers_ if type(estimator).__name__ == "DCN" else estimator.dec_cluster_centers_
    return [*estimator.neural_network_trained_.state_dict().values(), torch.from_numpy(centers)]


class Look:
    """Fires like BRB and notes what it was given, before and after BRB did its work."""

    def __init__(self, inner):
        self.inner, self.seen = inner, []

    def fires(self, epoch):
        return self.inner.fires(epoch)

    def check(self, blocks):
        self.inner.check(blocks)

    def __call__(self, epoch, target):
        before = {layer.name: layer.parameters["weight"].detach().clone() for block in target.blocks.values() for layer in block}
        moments = [moment.abs().sum().item() for moment in target.moments]
        self.inner(epoch, target)
        self.seen.append((epoch, target, before, moments))
        return True


every = pytest.mark.parametrize("name", ["DEC", "IDEC", "DCN"])


@every
def test_without_a_firing_it_is_clustpy(deep, name):
    plain, ours = fitted(model(deep, name)), fitted(intervene(model(deep, name), BRB(interval=EPOCHS)))
    assert all(torch.equal(one, other) for one, other in zip(learned(plain), learned(ours), strict=True))
    assert isinstance(ours, getattr(deep, name)) and ours.get_params().keys() == plain.get_params().keys()


@every
def test_brb_fires_between_epochs_on_the_live_model(deep, name):
    look = Look(BRB(interval=2, keep=0.5, method=KMeans(n_init=1)))
    ours = fitted(intervene(model(deep, name), look))
    assert [epoch for epoch, *_ in look.seen] == [2, 4]
    _, target, before, moments = look.seen[-1]
    assert list(target.blocks) == ["layer1", "layer2", "embedding"]
    assert (len(moments) > 0) == (name != "DCN") and all(moment > 0 for moment in moments), "Adam remembers DEC's centres"
    network = ours.neural_network_trained_
    for block in target.blocks.values():  # the very tensors that went on training
        for layer in block:
            assert any(layer.parameters["weight"] is own for own in network.encoder.parameters())
    plain = fitted(model(deep, name))
    assert not all(torch.equal(one, other) for one, other in zip(learned(plain), learned(ours), strict=True))


@every
def test_after_a_firing_centres_are_k_means_of_the_reset_encoder(deep, name):
    """Seen from the next firing's eyes: nothing trains in between with a learning rate of zero."""
    look = Look(BRB(interval=EPOCHS - 1, keep=0.5, method=KMeans(n_init=10)))
    ours = intervene(model(deep, name).set_params(clustering_optimizer_params={"lr": 0.0}), look)
    fitted(ours)
    (_, target, before, _), = look.seen
    reset = {layer.name for block in target.blocks.values() for layer in block
             if not torch.equal(before[layer.name], layer.parameters["weight"])}
    assert reset == {layer.name for block in ("layer1", "layer2") for layer in target.blocks[block]}
    z = target.embed()
    torch.testing.assert_close(z.float(), ours.neural_network_trained_.encode(torch.from_numpy(X)).detach())
    if name != "DCN":  # whose centres follow their samples without an optimizer
        means = torch.stack([z[target.assigner(z) == k].mean(0) for k in range(3)])
        torch.testing.assert_close(target.centers.detach(), means, rtol=1e-4, atol=1e-5)


def test_dcn_gets_labels_of_the_new_centres(deep, monkeypatch):
    seen = []
    module = deep.dcn._DCN_Module
    usual = module._loss
    monkeypatch.setattr(module, "_loss", lambda self, batch, network, *rest: (
        seen.append((self.labels.clone(), self.predict_hard(network.encode(torch.from_numpy(X))).detach())), usual(self, batch, network, *rest))[1])
    fitted(intervene(model(deep, "DCN"), BRB(interval=3, keep=0.2, method=KMeans(n_init=1))))
    batches = len(seen) // EPOCHS
    noted, nearest = seen[3 * batches]
    assert torch.equal(noted.int(), nearest.int())


def test_other_estimators_are_refused(deep):
    with pytest.raises(TypeError, match="DEC, IDEC or DCN, got VaDE"):
        intervene(deep.VaDE(3))
