"""What a GPU computes is what a CPU computes."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from support import Stop, blobs, small_settings, stop_at
from training.test_self_label import QUICK

from reclust import (
    IDEC,
    Autoencoder,
    Checkpoint,
    DCNObjective,
    DECObjective,
    Execution,
    IDECObjective,
    KMeans,
    Schedule,
    draws,
    geometry,
    train,
)
from reclust.data.augmentation.affine import Affine
from reclust.estimators import presets
from reclust.interventions import GaussianMixture, KMedoids, MergedKMeans
from reclust.representations.layers import mean_squared_error
from reclust.training.engine.adam import Adam, Leaf
from reclust.training.engine.compilation import Captured
from reclust.training.self_label import self_label
from reclust.utils import kernels

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, there is none here"),
]
X, Y = blobs(200)
OBJECTIVES = {"dec": DECObjective(), "idec": IDECObjective(), "dcn": DCNObjective()}


def on(device, executor="auto", precision="float64"):
    return Execution(device=device, precision=precision, executor=executor)


def gap(one, other):
    return max((one.parameters[name] - other.parameters[name]).abs().max().item() for name in one.parameters)


@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_the_same_losses_as_on_the_cpu_in_float64_augmentation_included(objective, seeds):
    images = torch.from_numpy(X[:, :12].reshape(200, 1, 3, 4))
    settings = small_settings(objective=objective, augment=Affine(), clustering=Schedule(5, batch_size=50))
    results = [train(images, settings, seeds=seeds, execution=on(device)) for device in ("cpu", "cuda")]
    losses = [result.history["clustering"]["loss"].values for result in results]
    assert np.abs(losses[0] - losses[1]).max() < 1e-8 and gap(*results) < 1e-8
    assert (results[0].labels == results[1].labels).all()


def test_captured_equals_step_by_step(monkeypatch):
    captured = train(X, small_settings(), seeds=(1, 2), execution=on("cuda"))
    monkeypatch.setattr(Captured, "ORDINARY_CALLS", 10**9)
    assert gap(captured, train(X, small_settings(), seeds=(1, 2), execution=on("cuda"))) < 1e-12


@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
@pytest.mark.parametrize("augment", [None, Affine()])
@pytest.mark.parametrize("algorithm", OBJECTIVES)
def test_the_program_of_the_paper_computes_what_it_does_on_the_cpu(algorithm, augment, seeds):
    """BatchNorm, a short last batch, train mode for the first centers."""
    settings = replace(small_settings(objective=OBJECTIVES[algorithm], augment=augment, pretraining=None), clustering=Schedule(6, batch_size=44))
    images, settings = torch.from_numpy(X[:, :12].reshape(200, 1, 3, 4)), presets.as_program(settings)
    results = [train(images, settings, seeds=seeds, execution=on(device)) for device in ("cpu", "cuda")]
    losses = [result.history["clustering"]["loss"].values for result in results]
    assert np.abs(losses[0] - losses[1]).max() < 1e-7 and (results[0].labels == results[1].labels).all()
    for name, stack in results[0].buffers.items():
        torch.testing.assert_close(stack, results[1].buffers[name], rtol=1e-6, atol=1e-6)


def test_a_learning_rate_that_changes_is_captured_anew():
    warm = replace(small_settings(), clustering=Schedule(6, batch_size=50, warmup_epochs=4))
    assert gap(*(train(X, warm, seeds=(1, 2), execution=on(device)) for device in ("cpu", "cuda"))) < 1e-8


@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
@pytest.mark.parametrize(("phase", "epoch"), [("pretraining", 1), ("clustering", 2), ("self-labeling", 1)])
def test_resumed_equals_uninterrupted(tmp_path, phase, epoch, seeds):
    execution, checkpoint = on("cuda"), Checkpoint(tmp_path / "run.ckpt", every=1)
    if phase == "self-labeling":
        clustered = train(X, small_settings(), seeds=seeds, execution=execution)
        work = partial(self_label, X, clustered, QUICK, execution=execution)
    else:
        work = partial(train, X, small_settings(), seeds=seeds, execution=execution)
    whole = work()
    with pytest.raises(Stop):
        work(checkpoint=checkpoint, monitors=[stop_at(phase, epoch)])
    resumed = work(checkpoint=checkpoint)
    assert gap(whole, resumed) < 1e-12 and (whole.labels == resumed.labels).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 5, 7), (3, 256, 1000), (2, 130, 33), (1, 3000, 9)])
def test_triton_kernels_compute_what_torch_does(dtype, shape, monkeypatch):
    torch.manual_seed(0)
    y, grad = torch.randn(2, *shape, device="cuda", dtype=torch.float64).to(dtype)
    bias = torch.randn(shape[0], shape[2], device="cuda", dtype=torch.promote_types(dtype, torch.float32))

    def computed():
        active, running = kernels.bias_relu_(y.clone(), bias), [torch.ones_like(bias) for _ in range(3)]
        norm = kernels.batch_norm_relu(y, running[0], bias, *running[1:])
        norm += (*running[1:], *kernels.batch_norm_relu_backward(grad, y, running[0], bias, *norm[1:]))
        return (*norm, active, *kernels.relu_backward(grad, active), kernels.column_sums(grad), kernels.squared_norms([grad, y]))

    fast = computed()
    monkeypatch.setattr(kernels, "triton", lambda like: None)
    close = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2}[dtype]
    for one, other in zip(fast, computed(), strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=close, atol=10 * close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_squared_error_and_its_gradient_are_torchs(dtype, monkeypatch):
    torch.manual_seed(0)
    x, output = torch.randn(2, 3, 50, 70, device="cuda")
    output = output.to(dtype).requires_grad_()

    def computed():
        losses = torch.func.vmap(mean_squared_error)(output, x)
        return losses, *torch.autograd.grad(3 * losses[0] + losses[1:].sum(), output)

    fast = computed()
    monkeypatch.setattr(kernels, "triton", lambda like: None)
    for one, other in zip(fast, computed(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-6)


def test_not_a_number_stays_one():
    y = torch.tensor([[[1.0, float("nan"), -1.0]]], device="cuda")
    active = kernels.bias_relu_(y.clone(), torch.zeros(1, 3, device="cuda"))
    through, sums = kernels.relu_backward(torch.ones_like(y), active)
    assert active[0, 0, 1].isnan() and through[0, 0].tolist() == [1.0, 1.0, 0.0] and sums[0].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("clip_norm", [None, 0.5, 1e6])
def test_triton_adam_is_torchs(clip_norm, decay, monkeypatch):
    results = []
    for triton in (True, False):
        torch.manual_seed(0)
        start = {"a": torch.randn(3, 40, 50), "b": torch.randn(3, 1500), "c": torch.randn(3, 2, 2)}
        leaves = {name: Leaf(value.double().cuda(), decay=decay, clipped=name != "c") for name, value in start.items()}
        if not triton:
            monkeypatch.setattr(kernels, "triton", lambda like: None)
        adam = Adam(leaves, lr=0.01, clip_norm=clip_norm, device="cuda")
        for _ in range(3):
            norms = adam.step({name: torch.randn(value.shape).double().cuda() for name, value in start.items()})
        adam.leaves["c"].steps[1] = 0
        adam.lr.fill_(0.1)
        adam.step({"c": torch.ones(3, 2, 2).double().cuda()})
        results.append({**{name: leaf.value for name, leaf in leaves.items()}, **adam.tensors(), "norms": norms})
    for name, value in results[0].items():
        if value is None:
            assert results[1][name] is None
        else:
            torch.testing.assert_close(value.double(), results[1][name].double(), rtol=1e-7, atol=1e-7)


def test_bf16_products_give_nearly_the_same_losses():
    losses = [train(X, small_settings(), seeds=(1, 2, 3), execution=on("cuda", precision=precision)).history["clustering"]["loss"].values
              for precision in ("float32", "bf16")]
    assert np.abs(losses[0] - losses[1]).max() / losses[0].max() < 0.05


def test_draws_are_the_same_bits():
    for draw in (lambda key: draws.bits(key, (1000,)), lambda key: draws.uniform(key, (1000,)), lambda key: draws.permutation(key, 1000)):
        cpu, gpu = (draw(draws.fold(draws.key([3, 1, 4], device=device), "x", 7)) for device in ("cpu", "cuda"))
        assert torch.equal(cpu, gpu.cpu())


@pytest.mark.parametrize("method", [KMeans(), MergedKMeans(), KMedoids(n_init=3), GaussianMixture(restarts=2)])
def test_reclustering_finds_what_it_finds_on_the_cpu(method):
    z = draws.normal(draws.key([0, 1]), (500, 4), dtype=torch.float64)
    cpu, gpu = (method(z.to(device), 5, draws.key([2, 3], device=device)).cpu() for device in ("cpu", "cuda"))
    torch.testing.assert_close(cpu, gpu)


def measured(z, labels, centers):
    """All measures of geometry."""
    return [*geometry.class_distances(z, labels), geometry.squared_silhouette(z, labels), geometry.distance_ratio_histogram(z, centers),
            geometry.local_purity(z, labels), *geometry.extremes(z, labels, centers, count=10)]


def test_measures_are_those_of_the_cpu():
    z, labels = draws.normal(draws.key(0), (3000, 10), dtype=torch.float64), draws.integers(draws.key(1), 10, (3000,))
    given = (z, labels, z[:10])
    for cpu, gpu in zip(measured(*given), measured(*(tensor.cuda() for tensor in given)), strict=True):
        torch.testing.assert_close(cpu, gpu.cpu())


def test_measures_of_70_000_embeddings_take_less_than_a_gigabyte():
    z, labels = draws.normal(draws.key(0), (70_000, 10)).cuda(), draws.integers(draws.key(1), 10, (70_000,)).cuda()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    measured(z, labels, z[:10])
    assert torch.cuda.max_memory_allocated() - before < 1e9


def test_matrix_precision_is_left_as_it_was():
    before = torch.get_float32_matmul_precision()
    train(X, small_settings(), seeds=(1,), execution=on("cuda", precision="float32"))
    assert torch.get_float32_matmul_precision() == before


def test_an_estimator_fitted_on_a_gpu_predicts_on_the_cpu(tmp_path):
    model = IDEC(4, epochs=11, pretrain_epochs=10, batch_size=32, representation=Autoencoder((16, 8)), random_state=0, device="cuda", n_init=2).fit(X)
    assert (model.predict(X) == model.labels_).all()
    many = np.concatenate([X] * 30)
    on_gpu = {name: getattr(model, name)(many) for name in ("predict", "predict_proba", "transform", "_outlier_score")}
    model.device = "cpu"
    for name, found in on_gpu.items():
        np.testing.assert_allclose(found, getattr(model, name)(many), rtol=1e-5, atol=1e-8, err_msg=name)
