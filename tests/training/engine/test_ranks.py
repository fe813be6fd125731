"""Several ranks find what one finds, and end together. Each rank is a fork of this process."""

import multiprocessing
import os
import pickle
import signal
import socket
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch.distributed as dist
from support import blobs, small_settings
from torch import nn

from reclust import (
    Autoencoder,
    Checkpoint,
    DCNObjective,
    DECObjective,
    Every,
    Execution,
    IDECObjective,
    Neighbors,
    OwnSimCLR,
    Recluster,
    Schedule,
    SoftReset,
    metrics,
    train,
)
from reclust.data.augmentation.affine import Noise
from reclust.interventions.exchange import Exchange

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ranks are forked, which Windows cannot do")
X, CLEAR = blobs(111, spread=3.0)[0], blobs(111, spread=0.2)[0]  # clusters that overlap, and that rounding cannot change
AUGMENTED, NEIGHBOR = ("augmented", "augmented"), ("clean", "neighbor")


def batches(size=41, **changes):  # the last one is shorter, and parts of ranks differ in size
    schedule = {"batch_size": size, "last_batch": "kept", **changes}
    return {"pretraining": Schedule(epochs=1, **schedule), "clustering": Schedule(epochs=4, **schedule)}


def contrastive():
    encoder = nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
    projector = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
    return OwnSimCLR(encoder, projector)


CASES = {
    "dec": small_settings(objective=DECObjective(), **batches()),
    "idec": small_settings(objective=IDECObjective(0.5), **batches()),
    "dcn": small_settings(objective=DCNObjective(rate="counts"), **batches()),
    "batch norm": small_settings(representation=Autoencoder((16, 8), batch_norm=True), **batches()),
    "contrastive": small_settings(representation=contrastive(), augment=Noise(), **batches(views=AUGMENTED)),
    "neighbors": small_settings(representation=Neighbors((16,), 4), **batches(views=NEIGHBOR, neighbors=5)),
    "last batch smaller than the world": small_settings(**batches(110)),
    "replicas": small_settings(**batches()),
    "exchange": small_settings(intervention=Every(2, (Exchange(), SoftReset(), Recluster())), **batches()),
}
ROUNDED = ("dec", "dcn", "batch norm", "contrastive", "neighbors")
SEEDS = {"replicas": (1, 2, 3), "exchange": (1, 2, 3)}


def fit(case, precision="float64", data=X, **options):
    given = {"seeds": SEEDS.get(case, (0,)), "execution": Execution("cpu", precision), **options}
    return train(data, CASES[case], **given)


def fail(snapshot):
    if snapshot.epoch == 1:
        raise OSError("no space left")


def message(call, *args, **options):
    try:
        return call(*args, **options)
    except (ValueError, RuntimeError, OSError) as error:
        return f"{type(error).__name__}: {error}"


def everything(rank):
    """What a rank finds in all cases, and how it ends in the others."""
    found = {case: fit(case).labels for case in CASES} | {
        f"{case} in float32": fit(case, "float32", CLEAR).labels for case in ROUNDED}
    noise = np.random.default_rng(rank).normal(size=X.shape)
    return found | {
        "other data": message(fit, "idec", data=noise),
        "small batch": message(train, X, small_settings(**batches(1)), seeds=[0]),
        "failed": message(fit, "idec", monitors=[fail]),
        "failed apart": message(fit, "replicas", monitors=[fail]),
        "budget": fit("idec", execution=Execution("cpu", time_budget=1e-9 if rank == 0 else None)).trained_epochs(
            "clustering")}


def killed(rank, file):
    """Train with a checkpoint; rank 1 is killed in the third epoch of the first run."""
    seen = Path(file).with_suffix(".seen")
    if rank == 1 and not seen.exists():
        from reclust.training.descent import GradientDescent
        plain = GradientDescent.train_epoch

        def train_epoch(self, epoch):
            if epoch == 2:
                seen.write_text(str(time.time()))
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(self, epoch)

        GradientDescent.train_epoch = train_epoch
    return message(lambda: fit("idec", checkpoint=Checkpoint(file, every=1)).labels)


def be(rank, size, port, task, file, *arguments):
    """Be one of the ranks."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(size), RANK=str(rank))
    warnings.simplefilter("ignore")  # pytest's filters make errors of them
    dist.init_process_group("gloo")
    file.write_bytes(pickle.dumps(task(rank, *arguments)))


def launch(task, folder, *arguments, size=2):
    """Run a task on local ranks; return what each of them returned, or None if it was killed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    files, fork = [Path(folder) / f"rank{rank}" for rank in range(size)], multiprocessing.get_context("fork")
    processes = [fork.Process(target=be, args=(rank, size, port, task, file, *arguments)) for rank, file in enumerate(files)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=100)
        process.kill()  # does nothing to one that has ended
    return [pickle.loads(file.read_bytes()) if file.exists() else None for file in files]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return launch(everything, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("case", CASES)
def test_ranks_find_what_one_finds(found, case):
    single = fit(case)
    for rank in found:
        assert np.array_equal(rank[case], single.labels)


@pytest.mark.parametrize("case", ROUNDED)
def test_ranks_find_almost_the_same_in_float32(found, case):
    [single] = fit(case, "float32", CLEAR).labels
    for rank in found:
        assert metrics.ari(single, rank[f"{case} in float32"][0]) >= 0.999


def test_bad_use_gets_one_line_on_every_rank(found):
    for rank in found:
        assert rank["other data"].startswith("ValueError: Rank 1 has other data or seeds than rank 0")
        assert rank["small batch"].startswith("ValueError: 2 ranks cannot share batches of 1 samples")


def test_an_error_on_one_rank_ends_all_with_its_message(found):
    for how in ("failed", "failed apart"):
        assert found[0][how] == "OSError: no space left"
        assert found[1][how] == "RankFailed: Rank 0 failed: OSError: no space left"


def test_all_ranks_stop_when_the_time_of_the_first_is_over(found):
    assert [rank["budget"] for rank in found] == [0, 0]


@pytest.mark.slow
def test_four_ranks(tmp_path):
    for rank in launch(everything, tmp_path, size=4):
        assert all(np.array_equal(rank[case], fit(case).labels) for case in CASES)


@pytest.mark.slow
def test_a_killed_rank_ends_the_other_and_the_run_continues(tmp_path):
    file = tmp_path / "run.checkpoint"
    first, second = launch(killed, tmp_path, file)
    assert first.startswith("RankFailed: Another rank ended without a message") and second is None
    assert (tmp_path / "rank0").stat().st_mtime - float(file.with_suffix(".seen").read_text()) < 10
    for labels in launch(killed, tmp_path, file):
        assert np.array_equal(labels, fit("idec").labels)
