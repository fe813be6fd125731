"""Fits do not disturb other threads or the caller's random state, and never use the network."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
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
