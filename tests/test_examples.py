"""The examples run, and what they promise is true."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from reclust import BRB, Autoencoder, IDECObjective, Schedule, Settings, metrics, train
from reclust.data.augment import Affine
from reclust.preparation import Preparation

ROOT = Path(__file__).parents[1]


def test_brb_in_a_loop_of_ones_own(tmp_path):
    """The three lines of the example reset at epochs 10, 20, … and nowhere else."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run([sys.executable, ROOT / "examples" / "own_loop.py"], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    lines = re.findall(r"^epoch +(\d+) +loss +(\S+) +accuracy +(\S+)( +<- reset)?$", ran.stdout, flags=re.MULTILINE)
    assert len(lines) == len(ran.stdout.splitlines())
    assert [int(epoch) for epoch, *_, reset in lines if reset] == [10, 20, 30]
    assert all(np.isfinite(float(loss)) and 0.1 <= float(accuracy) <= 1 for _, loss, accuracy, _ in lines)
    assert float(lines[-1][1]) < float(lines[0][1]), "the loss falls all the same"


@pytest.mark.slow
def test_brb_lifts_idec_on_the_digits_from_scratch():
    """What this library is for: five seeds with it and five without, side by side, as in examples/demo.py."""
    images, y = load_digits(return_X_y=True)
    plain = Settings(n_clusters=10, objective=IDECObjective(), representation=Autoencoder(hidden=(256, 128, 64)), pretraining=None,
                     clustering=Schedule(epochs=40, batch_size=64), augment=Affine())
    variants = [plain] * 5 + [replace(plain, intervention=BRB(interval=10, keep=0.8))] * 5
    result = train(Preparation.fit(images, (8, 8), standardize=True).inputs(images), variants, seeds=[*range(5), *range(5)])
    without, with_it = np.array([metrics.accuracy(y, labels) for labels in result.labels]).reshape(2, 5)
    assert with_it.mean() >= without.mean() + 0.10, (without, with_it)


@pytest.mark.slow
def test_all_stages_of_the_contrastive_benchmark_and_going_on_from_its_encoder(tmp_path):
    rng, y = np.random.default_rng(0), np.arange(60) % 10
    images = np.clip(rng.integers(0, 256, (10, 1, 1, 3))[y] + 20 * rng.normal(size=(60, 32, 32, 3)), 0, 255).astype(np.uint8)
    np.savez(tmp_path / "cifar10_half.npz", images=images, labels=y, split=(np.arange(60) >= 40).astype(np.uint8))
    command = [sys.executable, ROOT / "benchmarks" / "cifar_half.py", tmp_path / "cifar10_half.npz", "--out", tmp_path, "--device", "cpu", "--width", "2",
               "--batch", "20", "--pretrain-epochs", "2", "--epochs", "2", "--head-epochs", "1", "--label-epochs", "1", "--algorithms", "dcn", "--interventions"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    said = [subprocess.run([*command, *which], env=environment, capture_output=True, text=True, check=True).stdout for which in (["none"], ["none", "brb"])]
    parts = [re.findall(r"^(\w.*?): \d+ s", one, flags=re.MULTILINE) for one in said]
    assert parts == [["simclr", "simclr + k-means", "dcn, none", "dcn, none, self-labeled"], ["dcn, brb", "dcn, brb, self-labeled"]]
    assert (tmp_path / "cifar_half_400_encoder.reclust").exists() and not list(tmp_path.glob("*.ckpt"))
