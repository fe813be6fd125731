"""Fits and predictions on a Ray cluster."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from .estimators.load import load
from .training.checkpoint import Checkpoint
from .training.engine.ranks import RankFailed
from .utils.exceptions import require

CHECKPOINT_SECONDS = 20.0  # writing a large network after every epoch would be slow


def fit_on_ray(estimator: Any, X: Any, *, num_workers: int = 8, use_gpu: bool = True,
               storage_path: str | os.PathLike[str] | None = None, max_failures: int = 3) -> Any:
    """Fit an estimator on the workers of Ray Train, and return it as `load` would.

    Parameters
    ----------
    estimator : Reclust, IDEC, ...
        Stays unfitted.
    X : array, DataFrame, path, ...
        As in `fit`. A path must be the same on every machine.
    num_workers, use_gpu : int, bool
        Processes, which share the replicas of the fit, or the batches of its only one; with a GPU
        and NCCL, or a CPU and Gloo.
    storage_path : path-like, optional
        Folder for checkpoint and model, which all machines see; by default a temporary one, for one
        machine. The same call continues a fit that was interrupted.
    max_failures : int, default=3
        How often Ray starts lost workers again, which continue from the checkpoint.
    """
    ray, train = (require(name, purpose="Fitting on Ray", extra="cluster")
                  for name in ("ray", "ray.train.torch"))
    with TemporaryDirectory() as temporary:
        folder = Path(storage_path or temporary).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        data = _absolute(X) if isinstance(X, (str, os.PathLike)) else ray.put(X)
        trainer = train.TorchTrainer(
            _fit, train_loop_config={"estimator": estimator, "data": data, "folder": folder},
            scaling_config=ray.train.ScalingConfig(num_workers=num_workers, use_gpu=use_gpu),
            run_config=ray.train.RunConfig(
                storage_path=str(folder),
                failure_config=ray.train.FailureConfig(max_failures=max_failures)))
        try:
            trainer.fit()
        except ray.train.WorkerGroupError as error:  # a RankFailed only repeats another's error
            raise min(error.worker_failures.values(),
                      key=lambda failure: isinstance(failure, RankFailed)) from error
        return load(folder, representation=getattr(estimator, "representation", None))


def predict_on_ray(model: Any, data: Any, *, num_workers: int = 8, use_gpu: bool = False,
                   batch_size: int = 4096, output: str | os.PathLike[str] | None = None) -> Any:
    """Add a column `cluster` to a data set of any size, and return it as a `ray.data.Dataset`.

    Parameters
    ----------
    model : fitted estimator or path
    data : ray.data.Dataset or path
        Path of Parquet files, or of .npy or .csv files. A single column holds samples as arrays; of
        several, a model fitted on a table finds its own by name.
    num_workers, use_gpu, batch_size : int, bool, int
        Processes that hold the model, whether each has a GPU (only convolutional networks use it),
        and samples per call of `predict`.
    output : path-like, optional
        Folder for the result, as Parquet files. Ray may change the order of the rows.
    """
    ray_data = require("ray.data", purpose="Predicting on Ray", extra="cluster")
    folder = None if output is None else _absolute(output)
    if folder is not None and "://" not in folder:
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder):
            raise FileExistsError(f"{output} holds files: choose a new folder.")
    if isinstance(model, (str, os.PathLike)):
        model = load(model)
    if isinstance(data, (str, os.PathLike)):
        readers = {".npy": ray_data.read_numpy, ".csv": ray_data.read_csv}
        data = readers.get(Path(data).suffix, ray_data.read_parquet)(_absolute(data))
    labeled = data.map_batches(
        _Predictor, fn_constructor_args=(model,), batch_size=batch_size, batch_format="pandas",
        compute=ray_data.ActorPoolStrategy(max_size=num_workers), num_gpus=int(use_gpu))
    if folder is None:
        return labeled
    labeled.write_parquet(folder)
    return ray_data.read_parquet(folder)


def _absolute(path: str | os.PathLike[str]) -> str:
    """Return a path that workers understand, whose working directories differ; a URL stays."""
    return os.fspath(path) if "://" in str(path) else os.path.abspath(path)


def _fit(config: dict[str, Any]) -> None:
    """Fit in the process group of Ray's workers; the first one saves the model."""
    import ray.train.torch
    import torch

    data, folder = config["data"], config["folder"]
    device = ray.train.torch.get_device()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    checkpoint = Checkpoint(folder / "fit.checkpoint", every=1, seconds=CHECKPOINT_SECONDS)
    model = config["estimator"].fit(data if isinstance(data, str) else ray.get(data),
                                    checkpoint=checkpoint)
    if torch.distributed.get_rank() == 0:
        model.save(folder / "model.reclust")


class _Predictor:
    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, batch: Any) -> Any:
        X = np.stack(batch.iloc[:, 0]) if len(batch.columns) == 1 else batch
        return batch.assign(cluster=self.model.predict(X))
