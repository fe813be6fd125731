"""Fits do not disturb other threads or the caller's random state, and end at once when interrupted."""

import random
import signal
import threading
import warnings

import numpy as np
import pytest
import torch
from support import blobs

import reclust
from reclust import BRB, IDEC, Autoencoder, KMeans, ReclustWarning
from reclust.utils.device import Precision

X, _ = blobs(n=60)


def small(kind=IDEC, k=4, **changes):
    """A fit in a fifth of a second, for what does not depend on how well it goes."""
    given = {"representation": Autoencoder((8,)), "pretrain_epochs": 2, "epochs": 3, "batch_size": 30, "intervention": None, "random_state": 0, "device": "cpu"}
    return kind(k, **{**given, **changes})


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


def test_ctrl_c_ends_a_fit_once_and_leaves_a_checkpoint(tmp_path):
    def interrupt(snapshot):
        if (snapshot.phase, snapshot.epoch) == ("clustering", 10):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as ended:
        small(pretrain_epochs=0, epochs=100_000).fit(X, checkpoint=tmp_path, every=3, monitors=[interrupt])
    assert ended.value.__context__ is None and ended.value.__cause__ is None
    assert reclust.utils.tensor_file.read(tmp_path / "fit.checkpoint", "checkpoint")[0]["phase"] == "clustering"
    assert (tmp_path / "fit.checkpoint.previous").exists() and not list(tmp_path.glob(".*.tmp"))
