"""The examples run and do what they say."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from support import blobs

from reclust import BRB, Autoencoder, IDECObjective, Schedule, Settings, metrics, train
from reclust.objectives import DECObjective, soft_assignment, target_distribution

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
NEEDS = {"on_ray": "ray", "image_folder": "PIL", "customers": "pandas"}


def module(path):
    """Import a script without running its main."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


NOTEBOOKS = module(ROOT / "tools" / "notebooks.py")
SCRIPTS = [pytest.param(path, id=path.stem) for path in NOTEBOOKS.scripts()]


def test_brb_in_a_custom_loop(monkeypatch, capsys):
    """The three lines of the example reset at epochs 10, 20, … and nowhere else."""
    X, y = (array[:200] for array in load_digits(return_X_y=True))
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda return_X_y: (X, y))
    with torch.random.fork_rng():
        exec((ROOT / "examples" / "own_loop.py").read_text(), {})
    printed = capsys.readouterr().out
    lines = re.findall(r"^epoch +(\d+) +loss +(\S+) +accuracy +(\S+)( +<- reset)?$", printed, flags=re.MULTILINE)
    assert len(lines) == len(printed.splitlines())
    assert [int(epoch) for epoch, *_, reset in lines if reset] == [10, 20, 30]
    assert all(np.isfinite(float(loss)) and 0.1 <= float(accuracy) <= 1 for _, loss, accuracy, _ in lines)
    assert float(lines[-1][1]) < float(lines[0][1]), "the loss falls nevertheless"


def test_the_single_file_computes_what_the_library_does():
    """Equal formulas; keep=1 changes nothing, keep=0 everything but the last layer; it finds clusters."""
    single = module(ROOT / "examples" / "single_file.py")
    assert len((ROOT / "examples" / "single_file.py").read_text().splitlines()) <= 120
    generator = torch.Generator().manual_seed(0)
    z, centers = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (20, 4))
    torch.testing.assert_close(single.soft_assignment(z, centers), soft_assignment(z, centers))
    torch.testing.assert_close(single.target_distribution(single.soft_assignment(z, centers)), target_distribution(soft_assignment(z, centers)))
    torch.testing.assert_close(single.cluster_loss(z, centers), DECObjective().loss({"centers": centers}, z[None]))
    with torch.random.fork_rng():
        encoder = single.network([5, 8, 6, 3])
        before = [weights.detach().clone() for weights in encoder.parameters()]
        single.soft_reset_(encoder, 1.0)
        assert all(torch.equal(old, new) for old, new in zip(before, encoder.parameters(), strict=True))
        single.soft_reset_(encoder, 0.0)
        changed = [not torch.equal(old, new) for old, new in zip(before, encoder.parameters(), strict=True)]
        assert changed == [True] * 4 + [False] * 2
        X, y = blobs(n=160)
        X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
        assert metrics.accuracy(y, single.fit(X, 4, epochs=25)) > 0.9


def test_notebooks_are_made_from_the_scripts():
    kept = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
    assert [path.stem for path in kept] == [path.stem for path in NOTEBOOKS.scripts()]
    for script, kept_one in zip(NOTEBOOKS.scripts(), kept, strict=True):
        assert kept_one.read_text() == NOTEBOOKS.notebook(script.read_text()), "run make notebooks"
        cells = json.loads(kept_one.read_text())["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        # Both have the same statements, except for the docstring.
        assert ast.dump(ast.parse(code)) == ast.dump(ast.Module(ast.parse(script.read_text()).body[1:], []))


JOURNEYS = sorted((ROOT / "examples" / "journeys").glob("*.py"))


def test_journeys_are_short_and_have_pictures():
    assert len(JOURNEYS) == 6 and all(len(path.read_text().splitlines()) <= 15 for path in JOURNEYS)
    page = (ROOT / "docs" / "guides" / "examples.md").read_text()
    pictures = re.findall(r"\.\./figures/(journey_\w+\.png)", page)
    assert sorted(pictures) == [f"journey_{path.stem}.png" for path in JOURNEYS]
    assert all((ROOT / "docs" / "figures" / name).is_file() for name in pictures)


@pytest.mark.slow
@pytest.mark.parametrize("script", [pytest.param(path, id=path.stem) for path in JOURNEYS])
def test_a_journey_arrives(script, tmp_path):
    for package in {"cells": ("anndata", "scanpy"), "table": ("pandas",), "photos": ("PIL",), "deployment": ("pandas",)}.get(script.stem, ()):
        pytest.importorskip(package)
    ran = subprocess.run([sys.executable, script], env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout, ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_runs_as_a_script(script, tmp_path):
    pytest.importorskip(NEEDS.get(script.stem, "numpy"))
    ran = subprocess.run([sys.executable, script], env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_runs_as_a_notebook(script, tmp_path, monkeypatch):
    nbclient, nbformat = (pytest.importorskip(name) for name in ("nbclient", "nbformat"))
    pytest.importorskip("ipykernel")
    pytest.importorskip(NEEDS.get(script.stem, "numpy"))
    for name in ("OMP_NUM_THREADS", "PYTHONPATH"):
        monkeypatch.setenv(name, ENVIRONMENT[name])
    notebook = nbformat.read(ROOT / "examples" / "notebooks" / f"{script.stem}.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=None, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()


@pytest.mark.slow
def test_brb_lifts_idec_on_the_digits_from_scratch():
    """Five seeds with BRB and five without, side by side, as in examples/demo.py."""
    images, y = load_digits(return_X_y=True)
    plain = Settings(n_clusters=10, objective=IDECObjective(), representation=Autoencoder(hidden=(128, 64)), pretraining=None,
                     clustering=Schedule(epochs=30, batch_size=64))
    variants = [plain] * 5 + [replace(plain, intervention=BRB(interval=8, keep=0.8))] * 5
    result = train(((images - images.mean()) / images.std()).astype(np.float32), variants, seeds=[*range(5), *range(5)])
    without, with_it = np.array([metrics.accuracy(y, labels) for labels in result.labels]).reshape(2, 5)
    assert with_it.mean() >= without.mean() + 0.10, (without, with_it)


@pytest.mark.slow
def test_color_runs_in_pieces_and_goes_on_from_carried_weights(tmp_path):
    rng, y = np.random.default_rng(0), np.arange(200) % 10
    images = np.clip(rng.integers(0, 256, (10, 1, 1, 3))[y] + 20 * rng.normal(size=(200, 8, 8, 3)), 0, 255).astype(np.uint8)
    np.savez(tmp_path / "tiny.npz", images=images, labels=y, split=(np.arange(200) >= 160).astype(np.uint8))

    def ran(out, *more):
        command = [sys.executable, ROOT / "benchmarks" / "color.py", tmp_path / "tiny.npz", "--out", out, "--device", "cpu", "--width", "2",
                   "--batch", "40", "--label-batch", "40", "--length", "0.002", *more]
        said = subprocess.run(list(map(str, command)), env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
        return re.findall(r"^(\w.*?): \d+ s", said, flags=re.MULTILINE)

    assert ran(tmp_path / "one", "--cells") == ["simclr", "simclr + k-means"]
    other = tmp_path / "other"
    other.mkdir()
    for piece in (tmp_path / "one").glob("*.piece*"):
        (other / piece.name).write_bytes(piece.read_bytes())
    labeled = [f"secu, {which}{stage}" for which in ("none", "brb") for stage in ("", ", self-labeled", ", self-labeled as published")]
    published = ("--cells", "d", "--as-published")
    assert ran(other, *published)[7:] == labeled and ran(other, *published) == []
    assert not list(other.glob("*.ckpt*"))
