"""What a tracker shows is what the history says."""

import json

import numpy as np
import pytest
from support import blobs, small_settings

from reclust import IDEC, Evaluation, train
from reclust.training.monitors.trackers import MLflow, TensorBoard, Tracker, WandB


def small_model(**changes):
    return IDEC(4, random_state=0, preset=small_settings(), pretrain_epochs=2, epochs=5, batch_size=50, **changes)


def curves(history, replicas=1):
    """(name, epoch) -> number of everything in a history that is one number a replica."""
    return {(f"{phase}/{column}" + (f"/replica {i}" if replicas > 1 else ""), int(epoch)): float(values[i])
            for phase, columns in history.items() for column, curve in columns.items() if curve.values.shape[1:] == (replicas,)
            for epoch, values in zip(curve.epochs, curve.values, strict=True) for i in range(replicas)}


class Remembered(Tracker):
    def __init__(self):
        self.seen = {}

    def write(self, phase, epoch, numbers):
        for name, number in numbers.items():
            assert (name, epoch) not in self.seen, "each number is written once"
            self.seen[name, epoch] = number


class FakeRun:
    """A run as `wandb.init` makes one."""

    def __init__(self):
        self.config, self.logged = self, []

    def update(self, settings, allow_val_change):
        self.settings = settings

    def define_metric(self, name, step_metric):
        pass

    def log(self, numbers):
        self.logged.append(numbers)


def test_weights_and_biases_gets_the_settings():
    run = FakeRun()
    small_model().fit(blobs()[0], monitors=[WandB(run)])
    assert run.settings["clustering.epochs"] == "5" and run.settings["clustering.batch_size"] == "50" and run.logged


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_tracker_sees_the_whole_history(replicas):
    X, y = blobs()
    tracker = Remembered()
    result = train(X, small_settings(), seeds=range(replicas), monitors=[Evaluation(y), tracker])
    assert tracker.seen == curves(result.history, replicas)
    assert any(name.startswith("clustering/accuracy") for name, _ in tracker.seen)
    assert any(name.startswith("clustering/fired") for name, _ in tracker.seen)


def test_an_estimator_takes_monitors_and_learns_the_same():
    X, y = blobs()
    tracker = Remembered()
    model, plain = small_model().fit(X, y, monitors=[tracker]), small_model().fit(X, y)
    assert np.array_equal(model.labels_, plain.labels_)
    assert tracker.seen == {name: number for name, number in curves(model.result_.history).items()}


@pytest.mark.extras
def test_tensorboard_reads_back_what_was_written(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    X, y = blobs()
    with TensorBoard(tmp_path) as tracker:
        model = small_model().fit(X, y, monitors=[tracker])
    events = EventAccumulator(str(tmp_path)).Reload()
    read = {(tag, event.step): event.value for tag in events.Tags()["scalars"] for event in events.Scalars(tag)}
    written = curves(model.result_.history)
    assert read.keys() == written.keys()
    assert all(read[name] == np.float32(number) for name, number in written.items())


@pytest.mark.extras
@pytest.mark.parametrize("owner", ["the tracker", "somebody else"])
def test_mlflow_reads_back_what_was_written(tmp_path, owner, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions want to be asked for a folder
    uri = tmp_path.as_uri()
    client = mlflow.MlflowClient(uri)
    run_id = None if owner == "the tracker" else client.create_run(client.create_experiment("own")).info.run_id
    X, y = blobs()
    with MLflow("digits", run_id=run_id, tracking_uri=uri) as tracker:
        model = small_model().fit(X, y, monitors=[tracker])
    names = {name for name, _ in curves(model.result_.history)}
    read = {(name, point.step): point.value for name in names for point in client.get_metric_history(tracker.run_id, name)}
    assert read == curves(model.result_.history)
    run = client.get_run(tracker.run_id)
    assert run.data.params["clustering.epochs"] == "5"
    assert run.info.status == ("FINISHED" if owner == "the tracker" else "RUNNING")
    assert client.get_experiment(run.info.experiment_id).name == ("digits" if owner == "the tracker" else "own")
    assert mlflow.active_run() is None


@pytest.mark.extras
def test_a_fit_that_raises_ends_as_failed_in_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")

    def interrupt(snapshot):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), MLflow("digits", tracking_uri=tmp_path.as_uri()) as tracker:
        small_model().fit(blobs()[0], monitors=[tracker, interrupt])
    assert mlflow.MlflowClient(tmp_path.as_uri()).get_run(tracker.run_id).info.status == "FAILED"


@pytest.mark.extras
def test_weights_and_biases_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    try:
        run = wandb.init(project="reclust", mode="offline", dir=tmp_path)
    except Exception as error:  # its service is a program of its own, which not every machine lets it start
        pytest.skip(f"wandb cannot start here: {error}")
    X, y = blobs()
    try:
        model = small_model().fit(X, y, monitors=[WandB(run)])
        assert run.config["clustering.epochs"] == "5"
        summary = {name: run.summary[name] for name in ("clustering/accuracy", "clustering/epoch", "pretraining/loss")}
    finally:
        run.finish()
    last = {"clustering/accuracy": float(model.history_["clustering"]["accuracy"].values[-1]), "clustering/epoch": 4,
            "pretraining/loss": float(model.history_["pretraining"]["loss"].values[-1])}
    assert json.loads(json.dumps(summary)) == last
    assert list(tmp_path.rglob("*.wandb")), "the run is in a file of its own"


def test_wandb_takes_a_run_and_no_name():
    with pytest.raises(TypeError, match=r"WandB takes a run: WandB\(wandb.init\(project='digits'\)\)"):
        WandB("digits")
