"""Several processes, started as the guide says, find what one finds, also if one of them is lost."""

import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch.distributed as dist
from pages import ROOT, blocks
from support import blobs

from reclust import IDEC, Autoencoder, load, metrics
from reclust.distributed import fit_on_ray, predict_on_ray

GUIDE = ROOT / "docs/guides/many_gpus.md"
X = blobs(120)[0]
SMALL = {"representation": Autoencoder((16, 8)), "pretrain_epochs": 1, "epochs": 4, "batch_size": 40,
         "intervention": None, "random_state": 0}
SHORT = "pretrain_epochs=1, epochs=4, intervention=None"
LOSING = """
import os
from reclust.cli import fit
from reclust.training.descent import GradientDescent

fit.CHECKPOINT_SECONDS, plain = 0, GradientDescent.train_epoch

def train_epoch(self, epoch):
    restarted = os.environ.get("TORCHELASTIC_RESTART_COUNT") != "0"
    if self.replicas.objectives and os.environ.get("RANK") == "1" and epoch == (0 if restarted else 2):
        os._exit(1)
    return plain(self, epoch)

GradientDescent.train_epoch = train_epoch
"""


def code(containing):
    """The block of the guide that contains a text."""
    [found] = [text for *_, text in blocks(GUIDE) if containing in text]
    return found


@pytest.fixture
def run(tmp_path):
    """Runs a command of the guide with smaller numbers; `srun` starts it twice."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    (tmp_path / "bin").mkdir()
    for name, line in {"torchrun": f'exec "{sys.executable}" -m torch.distributed.run --local-addr 127.0.0.1 "$@"',
                       "srun": '"$@" & first=$!; "$@" && wait $first', "scontrol": "echo 127.0.0.1"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "HOME": str(tmp_path),
                                "PYTHONPATH": os.pathsep.join((str(tmp_path), *sys.path)), "SLURM_NNODES": "2", "SLURM_JOB_ID": "7"}
    np.save(tmp_path / "data.npy", X)

    def run(command, ranks):
        for given, here in (("--nproc-per-node 8", f"--nproc-per-node {ranks}"), ("node1:", "127.0.0.1:"), ("29500", port),
                            ("-k 10", "-k 4 --seed 0 --pretrain-epochs 1 --epochs 4 --device cpu"), ("/shared", str(tmp_path))):
            command = command.replace(given, here)
        subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, check=True, timeout=200)

    return run


def same_as_one_process(labels, **parameters):
    given = {"pretrain_epochs": 1, "epochs": 4, "intervention": None, "random_state": 0, **parameters}
    return metrics.ari(labels, IDEC(4, device="cpu", **given).fit(X).labels_) >= 0.999


@pytest.mark.slow
@pytest.mark.parametrize(("start", "command", "ranks"), [
    ("", "torchrun --standalone", 2), ("srun ", "--rdzv-id digits", 1), ("", "#SBATCH", 1)])
def test_commands_of_the_guide(run, tmp_path, start, command, ranks):
    run(start + code(command), ranks)
    assert same_as_one_process(load(tmp_path / "fit").labels_)


@pytest.mark.slow
def test_the_script_of_the_guide(run, tmp_path):
    program = code("init_process_group").replace("n_clusters=10", f"4, device='cpu', {SHORT}")
    (tmp_path / "fit.py").write_text(program)
    run("torchrun --standalone --nproc-per-node 8 fit.py", 2)
    assert same_as_one_process(load(tmp_path / "model.reclust").labels_)


@pytest.mark.slow
def test_torchrun_continues_after_a_rank_is_lost(run, tmp_path):
    """The second rank ends in the third epoch, and would end again if the fit began anew."""
    (tmp_path / "sitecustomize.py").write_text(LOSING)
    run(code("torchrun --standalone").replace("torchrun", "torchrun --max-restarts 1"), 2)
    assert same_as_one_process(load(tmp_path / "fit").labels_)


class Lost(IDEC):
    """Writes a checkpoint after every epoch; its second worker ends in the third epoch, once."""

    def fit(self, X, y=None, *, checkpoint=None, **options):
        from reclust.training.descent import GradientDescent

        folder, plain = Path(checkpoint.path).parent, GradientDescent.train_epoch

        def train_epoch(self, epoch):
            if self.replicas.objectives and epoch == 2 and dist.get_rank() == 1 and not (folder / "lost").exists():
                (folder / "lost").touch()
                os._exit(1)
            return plain(self, epoch)

        def note(snapshot):
            if (snapshot.phase, snapshot.moment) == ("clustering", "epoch"):
                with open(folder / "epochs", "a") as file:
                    file.write(f"{snapshot.epoch} ")

        GradientDescent.train_epoch = train_epoch
        return super().fit(X, y, checkpoint=replace(checkpoint, seconds=0), monitors=[note], **options)


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray", reason="needs ray: pip install 'reclust[cluster]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # so that workers can import the tests
        ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
        yield ray
        ray.shutdown()


def test_a_missing_ray_gets_one_line(monkeypatch):
    for name in ("ray", "ray.data", "ray.train.torch"):
        monkeypatch.setitem(sys.modules, name, None)
    for call in (fit_on_ray, predict_on_ray):
        with pytest.raises(ImportError, match=r"on Ray needs ray: pip install 'reclust\[cluster\]'"):
            call(IDEC(4), X)


def test_results_are_not_written_among_other_files(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray.data", ModuleType("ray.data"))
    (tmp_path / "x.parquet").write_text("data")
    with pytest.raises(FileExistsError, match="holds files: choose a new folder"):
        predict_on_ray(None, tmp_path, output=tmp_path)
    with pytest.raises(FileExistsError):
        predict_on_ray(None, tmp_path, output=tmp_path / "x.parquet")


@pytest.mark.slow
def test_code_of_the_guide_on_ray(ray, tmp_path):
    """Also: predictions from files are those of the model."""
    for file in ("data.npy", "rows.npy"):
        np.save(tmp_path / file, X)
    names = {}
    for block in (code("import fit_on_ray"), code("import predict_on_ray")):
        for given, here in (("n_clusters=10", f"4, {SHORT}"), ("use_gpu=True", "use_gpu=False"), ("/shared/rows", "/shared/rows.npy"),
                            ("num_workers=8", "num_workers=2"), ("num_workers=64", "num_workers=2"), ("/shared", str(tmp_path))):
            block = block.replace(given, here)
        exec(block, names)
    model, found = names["model"], names["labeled"].to_pandas()
    assert same_as_one_process(model.labels_) and (tmp_path / "fit/model.reclust").exists()
    assert sorted(found["cluster"]) == sorted(model.labels_)
    assert found["cluster"].tolist() == model.predict(np.stack(found["data"])).tolist()


@pytest.mark.slow
def test_workers_of_ray_share_replicas(ray):
    estimator = IDEC(4, n_init=2, **SMALL)
    model = fit_on_ray(estimator, X, num_workers=2, use_gpu=False)
    assert not hasattr(estimator, "labels_") and same_as_one_process(model.labels_, n_init=2, **SMALL)


@pytest.mark.slow
def test_ray_continues_after_a_worker_is_lost(ray, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    model = fit_on_ray(Lost(4, **SMALL), "x.npy", num_workers=2, use_gpu=False, storage_path="fit")
    assert (tmp_path / "fit/lost").exists()
    assert (tmp_path / "fit/epochs").read_text().split() == ["0", "1", "2", "3"]
    assert same_as_one_process(model.labels_, **SMALL)


@pytest.mark.slow
def test_errors_of_workers_are_those_of_a_fit(ray):
    with pytest.raises(ValueError, match="^n_clusters=400 needs at least 400 samples"):
        fit_on_ray(IDEC(400), X, num_workers=2, use_gpu=False, max_failures=0)


@pytest.mark.slow
def test_predictions_of_a_table_find_its_columns(ray, tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X[:, :2], columns=["age", "income"]).assign(kind=np.array(["a", "b"])[np.arange(len(X)) % 2])
    model = IDEC(2, **SMALL).fit(table)
    table.assign(name=np.arange(len(X)))[["name", "kind", "income", "age"]].to_parquet(tmp_path / "t.parquet")
    found = predict_on_ray(model, ray.data.read_parquet(str(tmp_path / "t.parquet")), num_workers=2, batch_size=50).to_pandas()
    assert found.sort_values("name")["cluster"].tolist() == model.labels_.tolist()


def test_the_guide_computes_with_the_records():
    def measured(name):
        return json.loads((ROOT / f"benchmarks/records/{name}.json").read_text())["measured"]

    def efficiency(ranks, step, split, exchanges, size):
        latency, speed = {8: (0.02, 400e6), 64: (0.05, 50e6)}[ranks]  # in milliseconds
        return step / (step - split * (1 - 1 / ranks) + exchanges * latency + 2 * (ranks - 1) / ranks * size / speed) / ranks

    text, one, ten, forty = GUIDE.read_text(), *(measured("replicas_cuda")[f"bf16, idec, {n}"] for n in (1, 10, 40))
    simclr = measured("contrastive_epoch")["simclr"]["milliseconds_a_step"]
    steps = {"one replica of IDEC": (one["step_ms"], one["floor_ms"]["products"], 4, 5.88e6),
             **{f"SimCLR{name}": (simclr * batch / 512, simclr * batch / 512, 91, 49.6e6) for name, batch in (
                 (" with ResNet-18, batch 512", 512), (", batch 4,096", 4096), (", batch 32,768", 32768))}}
    for name, step in steps.items():
        assert re.search(rf"\| {name}.* \| {efficiency(8, *step):.0%} \| {efficiency(64, *step):.0%} \|".replace("%", " %"), text), name
    assert f"{ten['step_ms']:.2f} | | none | {forty['per_replica'] / ten['per_replica']:.0%} |".replace("%", " %") in text
    for hidden in ((1024, 512, 256), (512, 256, 128)):
        layers = [*pairwise((784, *hidden, 10)), *pairwise((10, *hidden[::-1], 784))]
        weights = sum((i + 1) * o for i, o in layers)
        assert f"{4 * weights / 1e6:.1f} MB" in text and f"{2 * weights / 1e6:.1f} MB" in text and f"{12 * weights / 1e6:.1f} MB" in text
