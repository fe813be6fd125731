"""Streamed samples train as resident ones do."""

import numpy as np
import pytest
import torch
from scipy import sparse
from support import blobs, small_settings

from reclust import IDEC, Autoencoder, Execution, draws, train
from reclust.data import inputs as inputs_module
from reclust.data.inputs import ResidentInputs, StreamedInputs
from reclust.data.scaling import z_score
from reclust.estimators import fitted

X, Y = blobs(n=300)


def plain(raw):
    return raw.astype(np.float32)


@pytest.fixture
def short_runs(monkeypatch):
    monkeypatch.setattr(inputs_module, "RUN_SIZE", 12 * 10)  # ten samples a run
    monkeypatch.setattr(inputs_module, "RUNS_PER_GROUP", 4)


def test_an_order_visits_everybody_once_and_stays_local(short_runs):
    order = StreamedInputs(X, plain).order(draws.key([1, 2]))
    assert (order.sort(1).values == torch.arange(300)).all() and not torch.equal(order[0], order[1])
    for group in order[0][:280].split(40):  # four runs of ten, shuffled into each other
        assert len({row // 10 for row in group.tolist()}) == 4
    assert order[0][:40].diff().abs().float().mean() > 5


def test_an_order_is_the_same_alone_or_stacked(short_runs):
    inputs = StreamedInputs(X, plain)
    assert torch.equal(inputs.order(draws.key([1, 2]))[1], inputs.order(draws.key(2)))


@pytest.mark.parametrize("bring", [lambda X, path: np.load(path, mmap_mode="r"), lambda X, path: sparse.csr_matrix(X)], ids=["mapped", "sparse"])
def test_taking_equals_indexing_also_when_read_ahead(tmp_path, bring):
    np.save(tmp_path / "x.npy", X)
    inputs = StreamedInputs(bring(X, tmp_path / "x.npy"), plain, torch.tensor(1.0), torch.tensor(2.0)).to(torch.device("cpu"), torch.float64)
    rows = torch.randint(300, (5, 2, 7))
    expected = torch.from_numpy(X.astype(np.float32))[rows].double()
    assert torch.equal(inputs.take(rows), expected) and inputs.sample_shape == (12,) and inputs.n_samples == 300
    for (asked, x), block, part in zip(inputs.take_each(list(rows)), rows, expected, strict=True):
        assert torch.equal(asked, block) and torch.equal(x, part)
    assert torch.equal(inputs.normalize(expected), (expected - 1) / 2)


def test_with_the_same_order_streamed_equals_resident():
    class SameOrder(StreamedInputs):
        order = ResidentInputs.order

    given = {"seeds": (3, 1), "execution": Execution(device="cpu", precision="float64")}
    samples = torch.from_numpy(X.astype(np.float32))
    one, other = train(ResidentInputs(samples), small_settings(), **given), train(SameOrder(X, plain), small_settings(), **given)
    assert all(torch.equal(one.parameters[name], other.parameters[name]) for name in one.parameters)
    assert (one.labels == other.labels).all()


@pytest.mark.parametrize("form", ["mapped", "sparse"])
def test_estimators_stream_what_is_too_large(tmp_path, monkeypatch, form):
    monkeypatch.setattr(fitted, "resident_limit", lambda device: 1000)
    np.save(tmp_path / "x.npy", X)
    data = {"mapped": np.load(tmp_path / "x.npy", mmap_mode="r"), "sparse": sparse.csr_matrix(X)}[form]
    model = IDEC(4, epochs=2, pretrain_epochs=2, batch_size=64, intervention=None, representation=Autoencoder((8,)), random_state=0, device="cpu").fit(data)
    assert (model.predict(data) == model.labels_).all() and (model.predict(X) == model.labels_).all()
    assert model.baseline_.labels_.shape == (300,)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["array", "sparse"])
def test_statistics_in_one_pass(monkeypatch, make):
    monkeypatch.setattr("reclust.data.scaling.CHUNK_SIZE", 12 * 7)
    table = X * 10.0 ** np.arange(-6, 6) + np.arange(12)
    table[:, 3] = 5.0
    fitted = z_score(make(table))
    assert fitted.shift == pytest.approx(table.mean(0))
    assert fitted.scale == pytest.approx(np.where(np.arange(12) == 3, 1.0, table.std(0)))


def test_statistics_of_huge_and_tiny_numbers():
    for size in (1e-300, 1e300):
        fitted = z_score(X * size)
        assert fitted.scale / size == pytest.approx(X.std(0)) and np.isfinite(fitted(X * size)).all()
