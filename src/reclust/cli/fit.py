"""reclust fit and reclust predict: files in, labels out."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.files import check_folder, write_text
from ..utils.lock import only_one
from .output import NowAndThen, add_json, duration, positive, show

if TYPE_CHECKING:
    import numpy as np

    from ..data import Dataset
    from ..estimators.deep_clustering import DeepClustering
    from ..training.monitors.base import Snapshot

ALGORITHMS = ("idec", "dec", "dcn")
PRESETS = ("everyday", "paper", "best")
AUGMENTATIONS = ("affine", "color", "noise")
"""As `presets` and `estimators` have them."""
BETWEEN_STATES = 20.0
"""Seconds of training that a kill may cost, and an epoch: large networks take one to be written, which after each is too
often."""
CHECKPOINT = "fit.checkpoint"


def add(commands: argparse._SubParsersAction) -> None:
    fit = commands.add_parser(
        "fit", help="cluster a file or a folder of images",
        description="Cluster DATA and write FOLDER/labels.csv (the cluster of each sample) and FOLDER/model.reclust. While it "
                    "runs its state is kept in FOLDER: after a stop or a kill, the same command goes on.")
    add_data(fit)
    fit.add_argument("-k", "--n-clusters", type=int, required=True, metavar="K", help="how many clusters to look for")
    fit.add_argument("-o", "--output", default="reclust-output", metavar="FOLDER",
                     help="where to write labels and model (default: %(default)s)")
    fit.add_argument("--overwrite", action="store_true",
                     help="write over a finished model in FOLDER, or over the state of a run with other settings")
    fit.add_argument("--report", metavar="FILE", help="also write an HTML page that shows the clusters and what to doubt")
    fit.add_argument("--algorithm", choices=ALGORITHMS, default="idec", help="(default: %(default)s)")
    fit.add_argument("--preset", choices=PRESETS, help="(default: best for images, everyday for other data)")
    fit.add_argument("--n-init", type=int, metavar="N",
                     help="train so many models side by side and keep the best by a label-free score (default: the preset's)")
    fit.add_argument("--augment", choices=("auto", *AUGMENTATIONS, "none"), default="auto",
                     help="random views of samples to learn from (default: %(default)s)")
    fit.add_argument("--pretrain-epochs", type=int, metavar="N", help="0 starts from scratch")
    fit.add_argument("--epochs", type=int, metavar="N")
    add_light(fit)
    add_standardize(fit)
    add_image_shape(fit)
    add_size(fit)
    add_seed(fit)
    add_device(fit)
    fit.add_argument("--minutes", type=positive, metavar="M",
                     help="stop training after so long and write what there is; the same "
                     "command goes on from there")
    add_json(fit)
    fit.set_defaults(run=_fit, stopped="stopped: nothing was kept yet, so the next call starts anew")
    predict = commands.add_parser(
        "predict", help="assign new samples to the clusters of a model",
        description="Assign the samples in DATA to the clusters of a model that `reclust fit` wrote.")
    predict.add_argument("model", metavar="MODEL", help="model.reclust, or the folder that it is in")
    add_data(predict)
    predict.add_argument("-o", "--output", metavar="FILE", help="CSV to write (default: print it)")
    predict.add_argument("--report", metavar="FILE",
                         help="also write the HTML page of `reclust fit --report`; DATA must be what the model was fitted on")
    predict.set_defaults(run=_predict, size=None)


def add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help=".npy, .npz, .csv, .tsv, .txt, .csv.gz, .parquet, .h5, .h5ad, images "
                        "(a file or a folder), or the name of a set (see `reclust data list`)")
    parser.add_argument("--labels", metavar="NAME", help="column or array of known classes, which is no feature: at most to be "
                        "scored against; `folder`: the first-level folders of images")
    parser.add_argument("--ids", metavar="NAME", help="column that names the samples")
    parser.add_argument("--drop", metavar="NAME", nargs="+", action="extend", help="columns of a table to leave out")
    parser.add_argument("--key", metavar="NAME", help="which array of a file that holds several")
    parser.add_argument("--skip-broken", action="store_true", help="leave out images of a folder that cannot be read")


def add_device(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, … (default: %(default)s)")


def add_seed(parser: argparse.ArgumentParser, default: int | None = None) -> None:
    parser.add_argument("--seed", "--random-state", type=int, default=default, metavar="N",
                        help="the same seed gives the same result")


def add_image_shape(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--image-shape", type=int, nargs="+", metavar="N",
                        help="height width [channels] of images in flat rows")


def add_size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=int, nargs="+", metavar="N",
                        help="height width [channels] that images in files are brought to (default: theirs where all have "
                             "the same, else 28 28 for grey and 32 32 for colour)")


def add_light(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--light", choices=("kept", "removed"),
                        help="of colour images: whether to go by colours alone, as in sun and shadow (default: kept)")


def add_standardize(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-standardize", dest="standardize", action="store_false",
                        help="leave features on their own scales, as principal components need it")


def _fit(arguments: argparse.Namespace) -> int:
    try:
        return _fit_and_write(arguments)
    except KeyboardInterrupt:
        if any(Path(arguments.output).glob(f"{CHECKPOINT}*")):
            arguments.stopped = "stopped: call again to go on"
        raise


def _fit_and_write(arguments: argparse.Namespace) -> int:
    from .. import DCN, DEC, IDEC, Checkpoint
    from ..training.checkpoint import CheckpointMismatch

    found = read_data(arguments)
    images = found.image_shape is not None or arguments.image_shape is not None
    preset = arguments.preset or ("best" if images else "everyday")
    made: dict[str, type[DeepClustering]] = dict(zip(ALGORITHMS, (IDEC, DEC, DCN), strict=True))
    model = made[arguments.algorithm](
        arguments.n_clusters, preset=preset, n_init=arguments.n_init, epochs=arguments.epochs,
        pretrain_epochs=arguments.pretrain_epochs, augment=None if arguments.augment == "none" else arguments.augment,
        image_shape=arguments.image_shape, standardize=arguments.standardize, random_state=arguments.seed,
        device=arguments.device, time_budget=None if arguments.minutes is None else 60 * arguments.minutes)
    if arguments.light is not None:
        model.set_params(lens=replace(model._recipe(3).lens, light=arguments.light))
    folder = Path(arguments.output)
    checkpoint, kept = Checkpoint(folder / CHECKPOINT, every=1, seconds=BETWEEN_STATES), folder / "model.reclust"
    table = folder / "labels.csv"
    spare([arguments.data], [table, kept, arguments.report])
    if folder.is_file():
        raise FileExistsError(f"{folder} is a file: name a folder with -o.")
    with _own(folder):  # before training: a folder that cannot be made should cost no time
        if kept.exists() and not (checkpoint.exists() or arguments.overwrite):
            raise FileExistsError(f"{kept} is a finished model: choose another folder with -o, or write over it with "
                                  "--overwrite.")
        if table.exists() and not (kept.exists() or checkpoint.exists() or arguments.overwrite):
            raise FileExistsError(f"{table} is there, and no model beside it that it would belong to: choose another folder "
                                  "with -o, or write over it with --overwrite.")
        if arguments.report is not None:
            check_folder(arguments.report)
        monitors = [] if sys.stderr.isatty() else [_Lines()]
        try:
            model.fit(found, checkpoint=checkpoint, monitors=monitors)
        except CheckpointMismatch:
            if not arguments.overwrite:
                raise
            checkpoint.remove()
            model.fit(found, checkpoint=checkpoint, monitors=monitors)
        model.save(kept)
        write_text(table, _table(found, model.labels_))
        if arguments.report is not None:
            _write_report(model, found, arguments.report)
        _report(arguments, found, model, folder)
        if _cut_short(model):
            print("reclust: stopped before the end, with what there is: call again to go on", file=sys.stderr)
            return 3
        checkpoint.remove()
        return 0


@contextmanager
def _own(folder: Path) -> Iterator[None]:
    """The folder for this process alone; what was made for it and is empty in the end goes again."""
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    lock = folder / "fit.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_folder(lock)
        with only_one(lock, f"Another `reclust fit` is writing to {folder}: wait for it, or choose another folder with -o."):
            try:
                yield
            finally:
                with suppress(OSError):  # Windows keeps what is open
                    lock.unlink()
    finally:
        with suppress(OSError):
            for one in made:
                one.rmdir()


class _Lines:
    """A monitor that writes now and then how far training is."""

    def __init__(self) -> None:
        self._now_and_then = NowAndThen()

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.moment == "epoch":
            self._now_and_then.say(f"{snapshot.phase}, epoch {snapshot.epoch + 1} of {snapshot.epochs}")


def _cut_short(model: DeepClustering) -> bool:
    """Whether time ran out; where it did so in pretraining, no epoch of clustering was trained."""
    planned = model.result_.settings[0].clustering
    return planned is not None and model.result_.trained_epochs("clustering") < planned.epochs


def _report(arguments: argparse.Namespace, found: Dataset, model: DeepClustering, folder: Path) -> None:
    import numpy as np

    from ..metrics import scores

    report: dict[str, Any] = {
        "samples": len(found), "clusters": model.n_clusters_, "sizes": np.bincount(model.labels_).tolist(),
        "seconds": round(sum(model.result_.seconds.values()), 1), "complete": not _cut_short(model), "output": str(folder)}
    if found.labels is not None:
        report |= scores(found.labels, model.labels_)
        report |= {f"k-means {name}": value for name, value in scores(found.labels, model.baseline_.labels_).items()}
    if arguments.json:
        show([report], as_json=True)
        return
    print(f"{len(found)} samples in {model.n_clusters_} clusters of {', '.join(map(str, report['sizes']))}, "
          f"after {duration(report['seconds'])}")
    if found.labels is not None:
        for name in ("accuracy", "nmi", "ari"):
            print(f"{name:8}  {report[name]:.3f}   (k-means: {report['k-means ' + name]:.3f})")
    print(f"labels and model are in {folder}" + ("" if arguments.report is None else f", the report is {arguments.report}"))


def _predict(arguments: argparse.Namespace) -> int:
    from .. import load
    from ..data.formats.images import holds_images
    from ..data.preparation import in_columns_of

    if Path(arguments.model).is_dir():
        arguments.model = str(Path(arguments.model) / "model.reclust")
    for output in filter(None, (arguments.output, arguments.report)):
        check_folder(output)
    spare([arguments.model, arguments.data], [arguments.output, arguments.report])
    model = load(arguments.model)
    if holds_images(arguments.data):  # they become what the model was fitted on
        arguments.size = model.preparation_.image_shape
    found = in_columns_of(model, read_data(arguments))
    labels = model.predict(found)
    if arguments.output is None:
        sys.stdout.write(_table(found, labels).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    else:
        write_text(arguments.output, _table(found, labels))
    if arguments.report is not None:
        _write_report(model, found, arguments.report)
    return 0


def _write_report(model: DeepClustering, found: Dataset, path: str) -> None:
    model.report(path, found, found.labels, title=f"{found.name} in {model.n_clusters_} clusters")


def spare(inputs: Sequence[str], outputs: Sequence[str | Path | None]) -> None:
    """Refuse to write over what was given to be read."""
    for output, given in product((Path(one) for one in outputs if one is not None), map(Path, inputs)):
        if output.exists() and given.exists() and output.samefile(given):
            raise FileExistsError(f"{output} is what is to be read, and would be written over: name another output.")


def read_data(arguments: argparse.Namespace) -> Dataset:
    from ..data import load, names, read

    if arguments.data in names() and not Path(arguments.data).exists():
        given = [f"--{name}" for name in ("labels", "ids", "drop", "key", "skip-broken", "size")
                 if getattr(arguments, name.replace("-", "_"))]
        if given:
            raise ValueError(f"{', '.join(given)} cannot be given for the set {arguments.data}, whose labels are known: leave "
                             "that out, or name a file.")
        return load(arguments.data)
    return read(arguments.data, key=arguments.key, labels=arguments.labels, ids=arguments.ids, size=arguments.size,
                on_error="skip" if arguments.skip_broken else "raise", drop=arguments.drop)


def _table(found: Dataset, labels: np.ndarray) -> str:
    """One line a sample, in the order of the data; without names of their own samples are counted from 0."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "cluster"))
    writer.writerows(zip(range(len(labels)) if found.ids is None else found.ids, labels, strict=True))
    return text.getvalue()
