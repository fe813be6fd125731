"""Numbers that go wrong are handled or reported in words; nothing a caller owns is touched; nothing reaches the network."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse
from support import blobs

import reclust
from reclust import (
    BRB,
    DCN,
    DEC,
    IDEC,
    Autoencoder,
    KMeans,
    OwnAutoencoder,
    Recluster,
    ReclustWarning,
    TrainingFailed,
)
from reclust.data.accept import accept
from reclust.data.preparation import Preparation
from reclust.interventions import Intervention
from reclust.utils.device import Precision

X, Y = blobs(n=60)


def small(kind=IDEC, k=4, **changes):
    given = {"representation": Autoencoder((8,)), "pretrain_epochs": 2, "epochs": 3, "batch_size": 30, "intervention": None, "random_state": 0, "device": "cpu"}
    return kind(k, **{**given, **changes})


# Handled, or said in words


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", [DEC, IDEC, DCN])
@pytest.mark.parametrize("data", [
    X * 1e300, X * 1e-300, X * np.logspace(-200, 200, 12), np.c_[X, np.full(60, 7.0)], np.repeat(X[:3], 20, axis=0), np.vstack([X, np.full((1, 12), 1e12)]),
    np.vstack([np.zeros((59, 3)), np.ones((1, 3))]), np.where(np.arange(60)[:, None] % 2, 1.7e308, -1.7e308) * np.ones(3), X[:4], X[:, :1],
], ids=["huge", "tiny", "mixed", "constant feature", "duplicates", "outlier", "imbalanced", "largest numbers", "as few as clusters", "one feature"])
def test_awkward_data_is_clustered(kind, data):
    before = data.copy()
    model = small(kind).fit(data)
    assert (data == before).all() and np.isfinite(model.transform(data)).all() and (model.predict(data) == model.labels_).all()


TABLE = np.random.default_rng(1).uniform(1, 10, (200, 3))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("rows", "value", "said"), [(1, 1e5, "100000; 1 of"), (2, -99999, "-99999; 2 of"), (30, -999, "-999; 30 of"), (80, -999, "-999; 80 of")])
def test_values_that_erase_their_column_are_told(rows, value, said, form):
    data = TABLE.copy()
    data[:rows, 1] = value
    with pytest.warns(ReclustWarning, match=rf"Outliers dominate .* in 'b' \({said} 200 rows\)\. Correct"):
        Preparation.fit(replace(accept(form(data)), feature_names=("a", "b", "c")), standardize=True)
    with pytest.warns(ReclustWarning, match=r"in feature 1 \("):
        Preparation.fit(accept(form(data)), standardize=True)


@pytest.mark.parametrize("column", [
    lambda rng: rng.lognormal(0, 2, 200), lambda rng: rng.standard_t(3, 200), lambda rng: rng.poisson(0.02, 200) * 50, lambda rng: np.arange(200) == 7,
    lambda rng: np.where(np.arange(200) == 7, 1e5, rng.integers(0, 5, 200)), lambda rng: np.where(np.arange(200) % 2, 1e5, 0) + rng.normal(size=200),
    lambda rng: np.full(200, 5.0),
], ids=["skewed", "heavy tails", "sparse counts", "rare category", "few values", "two groups", "constant"])
def test_columns_that_have_nothing_to_lose_are_not_told(column):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReclustWarning)
        for seed in range(5):
            data = np.c_[TABLE, column(np.random.default_rng(seed))]
            Preparation.fit(accept(data), standardize=True)
            Preparation.fit(accept(data[:25]), standardize=True)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_tables_that_want_logarithms_are_told(form):
    rng = np.random.default_rng(0)
    amounts = np.c_[rng.lognormal(3, 1, (200, 2)), rng.normal(size=200), rng.integers(0, 3, 200)]
    with pytest.warns(ReclustWarning, match=r"2 of 4 columns have long tails \('a', 'b'\).* np\.log1p on them"):
        Preparation.fit(replace(accept(form(amounts)), feature_names=("a", "b", "c", "d")), standardize=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReclustWarning)
        Preparation.fit(accept(form(amounts)), standardize=False)
        Preparation.fit(accept(form(amounts[:25])), standardize=True)
        for others in (np.log1p(amounts[:, :2]), np.c_[amounts[:, 0], TABLE[:, :2]], amounts * 1e-3,  # log1p leaves small ones as they are
                       amounts - 100, np.where(rng.random((200, 3)) < 0.2, 20, 10) + rng.normal(size=(200, 3)), rng.poisson(0.2, (200, 3))):
            Preparation.fit(accept(form(others)), standardize=True)


def test_new_rows_in_other_units_are_told():
    frame = pytest.importorskip("pandas").DataFrame(TABLE, columns=["age", "glucose", "weight"])
    model = small(k=2).fit(frame)
    with pytest.warns(ReclustWarning, match=r"differ a lot from the fit: 'glucose' \(about 9\d, in the fit 5\.\d+ ± 2\.\d+\)\. Use"):
        model.predict(frame.assign(glucose=18 * frame["glucose"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReclustWarning)
        model.predict(18 * frame[:4])  # so few may be unusual
        model.predict(frame + 10)
        small(k=2, standardize=False).fit(frame).predict(frame)


def test_features_that_were_constant_stay_0(tmp_path):
    constant = np.c_[X, np.full(60, 5.0)]
    model = small().fit(constant)
    other = np.c_[X, np.full(60, 5e4)]
    assert (model.transform(other) == model.transform(constant)).all()
    model.save(tmp_path / "m.reclust")
    assert (reclust.load(tmp_path / "m.reclust").transform(other) == model.transform(constant)).all()


@pytest.mark.parametrize("data", [np.ones((20, 3)), X * 1e-20], ids=["equal samples", "vanishing scale"])
def test_a_collapsed_embedding_is_reported(data):
    with pytest.warns(ReclustWarning, match="The encoder maps all samples to nearly one point"):
        assert small(standardize=False).fit(data).n_clusters_ == 1


def test_a_dead_encoder_is_reported():
    encoder = torch.nn.Sequential(torch.nn.Linear(12, 4), torch.nn.ReLU())
    torch.nn.init.zeros_(encoder[0].weight)
    torch.nn.init.constant_(encoder[0].bias, -1.0)
    with pytest.warns(ReclustWarning, match="all samples to nearly one point"):
        small(DEC, representation=OwnAutoencoder(encoder, torch.nn.Linear(4, 12), weights="given")).fit(X)


def test_exploding_gradients_are_clipped_and_reported():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = small(standardize=False).fit(X * 1e6)
    said = [str(one.message) for one in seen if "Gradients explode" in str(one.message)]
    assert [text.partition(" of ")[2].partition(":")[0] for text in said] == ["pretraining", "clustering"], "once a phase"
    assert all("clipped to 500" in text and "standardize=True" in text for text in said)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.filterwarnings("ignore:Gradients explode")
def test_a_loss_that_is_no_number_is_an_error_with_a_remedy():
    with pytest.warns(ReclustWarning, match="became (inf|nan)"), pytest.raises(TrainingFailed, match="check the scale of the data"):
        small(standardize=False).fit(X * 1e20)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_no_numbers_are_refused(bad):
    data = X.copy()
    data[3, 4] = bad
    with pytest.raises(ValueError, match=r"missing or infinite values in 'feature 4' \(1 of"):
        small().fit(data)


def test_masked_values_are_missing_ones():
    with pytest.raises(ValueError, match="X has 2 masked values"):
        small().fit(np.ma.array(X, mask=X >= np.sort(X, axis=None)[-2]))
    assert (small().fit(np.ma.array(X)).labels_ == small().fit(X).labels_).all()


def test_a_data_loader_is_read_as_its_data_set():
    rows = torch.utils.data.TensorDataset(torch.from_numpy(X))
    assert (small().fit(torch.utils.data.DataLoader(rows, shuffle=True)).labels_ == small().fit(X).labels_).all()


def test_arrow_tables_are_read_as_their_files_are():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({f"x{i}": column for i, column in enumerate(X.T)})
    fitted = small().fit(table)
    assert list(fitted.feature_names_in_) == table.column_names and (fitted.predict(table) == fitted.labels_).all()
    with pytest.raises(ValueError, match="not numeric: 'town'"):
        small().fit(table.append_column("town", arrow.array(["here"] * len(X))))


def test_tensors_of_a_type_that_numpy_lacks_are_taken():
    rows = torch.from_numpy(X).bfloat16()
    assert (small().fit(rows).labels_ == small().fit(rows.float().numpy()).labels_).all()


def test_missing_classes_are_not_scored_as_one():
    with pytest.raises(ValueError, match="labels are missing"):
        small().fit(X, np.where(Y == 0, np.nan, Y))


class Banished(Intervention):
    """Two centres are sent where no sample is, and k-means calls them back."""

    def fires(self, epoch):
        return epoch in (3, 13)

    def __call__(self, epoch, target):
        if epoch == 3:
            target.centers[..., :2, :] = 1e4
        elif epoch == 13:
            Recluster(KMeans(n_init=5))(target.at(epoch))
        return self.fires(epoch)


def test_the_history_tells_when_clusters_die_and_are_revived():
    columns = small(DEC, intervention=Banished(), epochs=15).fit(X).history_["clustering"]
    assert columns["clusters"].epochs.tolist() == [-1, 2, 3, 9, 12, 13, 14] and columns["clusters"].values.tolist() == [4, 4, 2, 2, 2, 4, 4]
    assert columns["clusters_after_reset"].epochs.tolist() == [3, 13] and columns["clusters_after_reset"].values.tolist() == [2, 4]


# Nobody is disturbed


def test_fits_in_threads_are_those_one_after_the_other_and_leave_random_states_alone():
    models = [small(random_state=seed, intervention=BRB(2, method=KMeans(n_init=2)), epochs=5) for seed in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)
        alone = [model.fit(X).transform(X) for model in models]
        torch.manual_seed(5), np.random.seed(5), random.seed(5)
        before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
        threads = [threading.Thread(target=model.fit, args=(X,)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for model, expected in zip(models, alone, strict=True):
        assert (model.transform(X) == expected).all()
    assert torch.equal(torch.get_rng_state(), before[0]) and (np.random.get_state()[1] == before[1]).all() and random.getstate() == before[2]


def test_threads_that_train_on_a_gpu_give_the_caller_its_precision_back():
    """The setting is one for the whole process: the last thread to leave restores what the first one found."""
    one, two = (Precision(torch.device("cuda"), "float32").training() for _ in range(2))
    before = torch.get_float32_matmul_precision()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert torch.get_float32_matmul_precision() == "high"
    two.__exit__(None, None, None)
    assert torch.get_float32_matmul_precision() == before


SOURCE = str(Path(reclust.__file__).parents[1])
OFFLINE = """
import socket, sys
def refuse(*given, **named):
    raise AssertionError("the network was asked for")
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
sys.addaudithook(lambda event, given: refuse() if event in ("socket.connect", "socket.getaddrinfo", "urllib.Request") else None)
import numpy as np, reclust, reclust.cli, warnings
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(40, 3))
model = reclust.IDEC(2, representation=reclust.Autoencoder((4,)), pretrain_epochs=1, epochs=1, intervention=None).fit(X)
model.save(sys.argv[1])
print(len(reclust.load(sys.argv[1]).predict(X)))
"""


def run_python(code, *given, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE}
    return subprocess.Popen([sys.executable, "-c", code, *given], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_nothing_asks_the_network(tmp_path):
    out, err = run_python(OFFLINE, str(tmp_path / "m.reclust")).communicate(timeout=120)
    assert out.strip() == "40", err


LONG_FIT = """
import signal, sys, numpy as np, reclust
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background ignores
X = np.random.default_rng(0).normal(size=(200, 5))
print("ready", flush=True)
reclust.IDEC(3, pretrain_epochs=0, epochs=100_000, random_state=0, device="cpu", representation=reclust.Autoencoder((8,))).fit(X, checkpoint=sys.argv[1], every=3)
"""


def test_ctrl_c_ends_a_fit_once_and_leaves_a_checkpoint(tmp_path):
    process = run_python(LONG_FIT, str(tmp_path))
    assert process.stdout.readline().strip() == "ready"
    deadline = time.monotonic() + 60
    while not (tmp_path / "fit.checkpoint.previous").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert error.count("KeyboardInterrupt") == 1 and process.returncode in (1, -signal.SIGINT, 130), error
    assert reclust.utils.tensor_file.read(tmp_path / "fit.checkpoint", "checkpoint")[0]["phase"] == "clustering"
    assert not list(tmp_path.glob(".*.tmp"))
