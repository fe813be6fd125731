"""Fits and predictions on Ray equal those of one process, also if a worker is lost."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch.distributed as dist
from support import blobs

from reclust import IDEC, Autoencoder, metrics
from reclust.distributed import fit_on_ray, predict_on_ray

X = blobs(120)[0]
SMALL = {"representation": Autoencoder((16, 8)), "pretrain_epochs": 1, "epochs": 4, "batch_size": 40,
         "intervention": None, "random_state": 0}


class Lost(IDEC):
    """Writes a checkpoint after every epoch; its second worker ends in the third epoch, once."""

    def fit(self, X, y=None, *, checkpoint=None, **options):
        def note(snapshot):
            if (snapshot.phase, snapshot.moment) == ("clustering", "epoch"):
                with open(folder / "epochs", "a") as file:
                    file.write(f"{snapshot.epoch} ")

        from reclust.training.descent import GradientDescent

        folder, plain = Path(checkpoint.path).parent, GradientDescent.train_epoch

        def train_epoch(self, epoch):
            if self.replicas.objectives and epoch == 2 and dist.get_rank() == 1 and not (folder / "lost").exists():
                (folder / "lost").touch()
                os._exit(1)
            return plain(self, epoch)

        GradientDescent.train_epoch = train_epoch
        return super().fit(X, y, checkpoint=replace(checkpoint, seconds=0), monitors=[note], **options)


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray", reason="needs ray: pip install 'reclust[cluster]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # so that workers can import the tests
        patch.setenv("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
        ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
        yield ray
        ray.shutdown()


def test_a_missing_ray_gets_one_line(monkeypatch):
    for name in ("ray", "ray.data", "ray.train.torch"):
        monkeypatch.setitem(sys.modules, name, None)
    for call in (fit_on_ray, predict_on_ray):
        with pytest.raises(ImportError, match=r"on Ray needs ray: pip install 'reclust\[cluster\]'"):
            call(IDEC(4), X)


@pytest.mark.slow
@pytest.mark.parametrize("n_init", [1, 2])
def test_workers_fit_what_one_process_fits(ray, n_init):
    estimator = IDEC(4, n_init=n_init, **SMALL)
    model = fit_on_ray(estimator, X, num_workers=2, use_gpu=False)
    assert not hasattr(estimator, "labels_")
    assert metrics.ari(model.labels_, estimator.fit(X).labels_) >= 0.999


@pytest.mark.slow
def test_a_fit_continues_after_a_worker_is_lost(ray, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    model = fit_on_ray(Lost(4, **SMALL), "x.npy", num_workers=2, use_gpu=False, storage_path="fit")
    assert (tmp_path / "fit/lost").exists()
    assert (tmp_path / "fit/epochs").read_text().split() == ["0", "1", "2", "3"]
    assert metrics.ari(model.labels_, IDEC(4, **SMALL).fit(X).labels_) >= 0.999


@pytest.mark.slow
def test_errors_of_workers_are_those_of_a_fit(ray):
    with pytest.raises(ValueError, match="^n_clusters=400 needs at least 400 samples"):
        fit_on_ray(IDEC(400), X, num_workers=2, use_gpu=False, max_failures=0)


@pytest.mark.slow
def test_predictions_are_those_of_the_model(ray, tmp_path):
    model = IDEC(4, **SMALL).fit(X)
    model.save(tmp_path / "model.reclust")
    np.save(tmp_path / "x.npy", X)
    found = predict_on_ray(tmp_path, tmp_path / "x.npy", num_workers=2, batch_size=50, output=tmp_path / "labels").to_pandas()
    assert sorted(found["cluster"]) == sorted(model.labels_)
    assert found["cluster"].tolist() == model.predict(np.stack(found["data"])).tolist()


@pytest.mark.slow
def test_predictions_of_a_table_find_its_columns(ray, tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X[:, :2], columns=["age", "income"]).assign(kind=np.array(["a", "b"])[np.arange(len(X)) % 2])
    model = IDEC(2, **SMALL).fit(table)
    table.assign(name=np.arange(len(X)))[["name", "kind", "income", "age"]].to_parquet(tmp_path / "t.parquet")
    found = predict_on_ray(model, ray.data.read_parquet(str(tmp_path / "t.parquet")), num_workers=2, batch_size=50).to_pandas()
    assert found.sort_values("name")["cluster"].tolist() == model.labels_.tolist()
