"""Convolutional autoencoders: torch's convolutions as the oracle, images of every size, and all that training does with them."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from support import Stop, small_settings, stop_at
from torch import nn

import reclust
from reclust import (
    BRB,
    IDEC,
    Checkpoint,
    ConvAutoencoder,
    Execution,
    KMeans,
    Schedule,
    SoftReset,
    Target,
    draws,
    train,
)
from reclust.data.augmentation.affine import Affine
from reclust.representations import build_network
from reclust.representations.convolutional import (
    Convolution,
    Residual,
    TransposedConvolution,
    fold_patches,
    patches,
)

DIGITS = load_digits().images[:80].astype(np.float32) / 16
IMAGES = torch.from_numpy(DIGITS).double().unsqueeze(1)
SMALL = ConvAutoencoder((4, 6), embedding=3)
EXACT = {name: Execution(device="cpu", precision="float64", executor=name) for name in ("plain", "vmap")}
sizes = pytest.mark.parametrize("size", [(1, 1), (4, 6), (5, 4), (7, 9), (8, 8)], ids=lambda size: f"{size[0]}x{size[1]}")


def normal(*shape, name="x"):
    return draws.normal(draws.fold(draws.key(0), name), shape, dtype=torch.float64)


def filled(module):
    """Weights that no initial distribution favours, in float64."""
    module.double()
    for name, parameter in module.named_parameters():
        parameter.data.copy_(normal(*parameter.shape, name=name))
    return module


def first(x):
    return x.movedim(-1, 1)


@sizes
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_is_torchs(size, stride):
    own = filled(Convolution(3, 5, stride))
    theirs = nn.functional.conv2d(first(x := normal(2, *size, 3)), own.linear.weight.unflatten(1, (3, 3, 3)).movedim(-1, 1),
                                  own.linear.bias, stride, padding=1)
    torch.testing.assert_close(first(own(x)), theirs)


@sizes
def test_an_enlargement_is_torchs_transposed_convolution(size):
    own = filled(TransposedConvolution(3, 5, *size))
    own.linear.bias.data.zero_()
    weight = own.linear.weight.T.unflatten(1, (3, 3, 5)).movedim(-1, 1)
    x = normal(2, *((side + 1) // 2 for side in size), 3)
    theirs = nn.functional.conv_transpose2d(first(x), weight, None, 2, 1, [1 - side % 2 for side in size])
    torch.testing.assert_close(first(own(x)), theirs)


@sizes
@pytest.mark.parametrize("stride", [1, 2])
def test_overlaying_is_the_transpose_of_taking_apart(size, stride):
    x = normal(2, *size, 3).requires_grad_()
    apart = patches(x, stride)
    y = normal(*apart.shape, name="y").requires_grad_()
    torch.testing.assert_close((apart * y).sum(), (x * fold_patches(y, stride, *size)).sum())
    assert torch.autograd.gradcheck(lambda x: patches(x, stride), x, fast_mode=True)
    assert torch.autograd.gradcheck(lambda y: fold_patches(y, stride, *size), y, fast_mode=True)


def test_a_residual_of_zeros_is_the_identity_of_what_is_positive():
    own, x = filled(Residual(3)), normal(2, 4, 5, 3)
    assert not torch.equal(own(x), x.relu())
    for parameter in own.second.parameters():
        parameter.data.zero_()
    assert torch.equal(own(x), x.relu())


@sizes
def test_images_of_every_size_come_back_in_their_shape_and_gradients_are_right(size):
    channels = 1 if size[0] == size[1] else 3
    representation = ConvAutoencoder((3, 4), residuals=1, embedding=2)
    net = filled(build_network(representation, (channels, *size), 5, torch.float64)).requires_grad_()
    views = normal(1, 2, channels, *size)
    z = representation.encode_views(net, views)
    assert z.shape == (1, 2, 2) and net.decoder(z[0]).shape == (2, channels * size[0] * size[1])

    def loss(*parameters):
        named = dict(zip(dict(net.named_parameters()), parameters, strict=True))
        made = torch.func.functional_call(net, named, (views[0],))
        return nn.functional.mse_loss(made, views[0].flatten(1))

    net.forward = lambda x: net.decoder(net.encoder(x))
    torch.testing.assert_close(loss(*net.parameters()), representation.loss(net, views, z))
    assert torch.autograd.gradcheck(loss, tuple(net.parameters()), fast_mode=True)


def test_reconstruction_is_mirrored_pixel_by_pixel():
    """A network that can only copy learns to: what comes out lies where it came in."""
    representation = ConvAutoencoder((8,), embedding=64)
    result = train(IMAGES, small_settings(representation=representation, clustering=None,
                                          pretraining=Schedule(60, lr=1e-2, batch_size=40, views=("clean",))), seeds=(0,))
    loss = result.history["pretraining"]["loss"].values
    assert loss[-1] < 0.3 * IMAGES.var(0).mean().item() < loss[0]


@torch.no_grad()
def test_blocks_and_the_default_reset_that_leaves_the_embedding_alone():
    net = filled(build_network(ConvAutoencoder((4, 6), residuals=1), (1, 8, 8), 3, torch.float64))
    assert list(SMALL.blocks(net)) == ["block1", "block2", "embedding"]
    target = Target.of(net.encoder, torch.zeros(3, 3), embed=lambda: net.encoder(IMAGES),
                       blocks={name: net.encoder.get_submodule(name) for name in ("block1", "block2", "embedding")})
    before = {name: tensor.clone() for name, tensor in net.named_parameters()}
    for step in (SoftReset(1.0), SoftReset({"block2": 1.0, "embedding": 1.0})):
        step(target)
        assert all(torch.equal(tensor, before[name]) for name, tensor in net.named_parameters())
    SoftReset(0.8)(target)
    same = {name.split(".")[1] for name, tensor in net.encoder.named_parameters(prefix="encoder") if torch.equal(tensor, before[name])}
    assert same == {"embedding"}
    with pytest.raises(ValueError, match="only block1, block2, embedding"):
        SoftReset({"layer1": 0.5}).check(target.blocks)


def settings(**changes):
    return small_settings(representation=SMALL, augment=Affine(), **changes)


def test_stacked_equals_separate():
    stacked, plain = (train(IMAGES, settings(), seeds=(3, 1), execution=EXACT[name]) for name in ("vmap", "plain"))
    alone = train(IMAGES, settings(), seeds=(1,), execution=EXACT["plain"])
    for name, tensor in stacked.parameters.items():
        torch.testing.assert_close(tensor, plain.parameters[name], rtol=0, atol=1e-9)
        torch.testing.assert_close(tensor[1:], alone.parameters[name], rtol=0, atol=1e-9)
    assert stacked.history["clustering"]["fired"].epochs.tolist() == [2, 4] and (stacked.labels == plain.labels).all()


def test_resumed_equals_uninterrupted(tmp_path):
    given = {"seeds": (1, 2), "execution": Execution(device="cpu")}
    whole, checkpoint = train(IMAGES, settings(), **given), Checkpoint(tmp_path / "run.ckpt", every=1)
    with pytest.raises(Stop):
        train(IMAGES, settings(), **given, checkpoint=checkpoint, monitors=[stop_at("clustering", 2)])
    resumed = train(IMAGES, settings(), **given, checkpoint=checkpoint)
    assert all(torch.equal(tensor, resumed.parameters[name]) for name, tensor in whole.parameters.items())


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
def test_a_model_comes_through_a_file(tmp_path):
    colours = np.stack([DIGITS, DIGITS[:, ::-1], 1 - DIGITS], axis=-1)[:, :7]
    model = IDEC(3, representation=ConvAutoencoder((4, 6)), pretrain_epochs=2, epochs=3, intervention=BRB(2, method=KMeans(n_init=2)),
                 augment="affine", n_init=2, random_state=0, device="cpu").fit(colours)
    model.save(tmp_path / "m.reclust")
    loaded = reclust.load(tmp_path / "m.reclust")
    for method in ("predict", "predict_proba", "transform"):
        assert (getattr(loaded, method)(colours) == getattr(model, method)(colours)).all()
    assert (model.labels_ == model.predict(colours)).all() and model.transform(colours).shape == (80, 3)


def test_mistakes():
    with pytest.raises(ValueError, match=r"ConvAutoencoder needs images \(channels, height, width\), got samples of shape \(64,\): give image_shape="):
        IDEC(3, representation=SMALL, device="cpu").fit(DIGITS.reshape(80, 64))
    for changes, message in (({"channels": (4, 0)}, "each number in channels must be"),
                             ({"residuals": -1}, "residuals must be"), ({"embedding": 0}, "embedding must be")):
        with pytest.raises(ValueError, match=message):
            ConvAutoencoder(**changes)
