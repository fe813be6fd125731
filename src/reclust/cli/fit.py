"""`reclust fit`, `predict` and `suggest-k`: cluster files, assign new samples, count clusters."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.choices import ALGORITHMS, AUGMENTATIONS, EFFORTS, PRESETS
from ..utils.exceptions import printable
from ..utils.files import csv_text, exclusive_lock, write_text
from ..utils.progress import duration
from . import common
from .common import DATA, LABEL_COLUMNS, PREPARATION, add_command, add_options, read_data, show

if TYPE_CHECKING:
    from ..data import Dataset
    from ..ensemble.granularity import KSuggestion

OWN_FILES = ("labels.csv", "quick-labels.csv", "model.reclust", "fit.checkpoint",
             "fit.checkpoint.previous", "fit.lock")
TIMES_QUICK = {"normal": 7, "high": 40}  # how long fits took, to within a factor of two
CHECKPOINT_SECONDS = 20.0  # writing a large network after every epoch would be slow


def add(commands: argparse._SubParsersAction) -> None:
    fit = add_command(
        commands, "fit", _fit, "cluster a file or a folder of images",
        "Writes labels.csv, model.reclust and report.html into FOLDER. Run it again if it is "
        "interrupted.",
        interrupted="interrupted: run the same command again to continue")
    add_options(fit, *DATA)
    option = fit.add_argument
    option("-k", "--n-clusters", type=number, default="auto", metavar="K",
           help="number of clusters (default: found in the data)")
    option("-o", "--output", default="reclust-output", metavar="FOLDER",
           help="folder for labels, model and report (default: %(default)s)")
    option("--overwrite", action="store_true", help="replace a model or another fit's checkpoint")
    option("--report", metavar="FILE", help="HTML page about the clusters (default: "
           "report.html in FOLDER)")
    option("--algorithm", choices=("reclust", *ALGORITHMS),
           help="(default: reclust, or idec if one of the options of deep clustering is given)")
    option("--effort", choices=EFFORTS, default="normal", help="of reclust (default: %(default)s)")
    fit_deep = fit.add_argument_group("options of deep clustering (dec, idec, dcn)")
    option = fit_deep.add_argument
    option("--preset", choices=PRESETS, help="(default: best for images, everyday for other data)")
    option("--n-init", type=int, metavar="N", help="models, of which the best by a label-free "
           "score is kept (default: depends on the preset)")
    option("--augment", choices=("auto", *AUGMENTATIONS, "none"), default="auto",
           help="data augmentation (default: %(default)s)")
    option("--pretrain-epochs", type=int, metavar="N", help="0 starts from scratch")
    option("--epochs", type=int, metavar="N")
    add_options(fit, *PREPARATION, "--seed", "--device", "--minutes", "--json")
    predict = add_command(commands, "predict", _predict, "assign new samples", size=None)
    option = predict.add_argument
    add_options(predict, "model", *DATA, "--json")
    option("-o", "--output", metavar="FILE", help="CSV file (default: print)")
    option("--report", metavar="FILE", help="also write a report, if DATA is the fitted data")
    card = add_command(commands, "show", _show, "print a model's card",
                       "Settings, data, clusters, agreement with k-means, warnings and versions.")
    add_options(card, "model", "--json")
    suggest = add_command(
        commands, "suggest-k", _suggest_k, "suggest a number of clusters",
        "Clusters DATA with different methods, and reports how far they agree for each number of "
        "clusters.", seed=0)
    add_options(suggest, *DATA, "--image-shape", "--size")
    option = suggest.add_argument
    option("--from", dest="least", type=int, default=2, metavar="K", help="smallest (default: 2)")
    option("--to", dest="most", type=int, metavar="K", help="largest (default: by sample count)")
    add_options(suggest, "--device", "--seed", "--json")


def _fit(arguments: argparse.Namespace) -> int:
    from ..training.engine.ranks import torchrun

    folder = Path(arguments.output)
    arguments.report = arguments.report or folder / "report.html"
    outputs = [*(folder / name for name in OWN_FILES), arguments.report]
    common.check_paths([arguments.data], outputs, folder)
    dataset = read_data(arguments)
    model = _model(arguments, images=dataset.image_shape is not None)
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "fit.lock"
    with torchrun() as is_first:
        if not is_first:  # the first rank prints and writes
            warnings.simplefilter("ignore")
            return _fit_into(folder, model.set_params(progress=False), dataset, arguments, False)
        with exclusive_lock(lock, f"Another `reclust fit` is writing to {folder}: wait for it, or "
                                  "use another folder with -o."):
            try:
                return _fit_into(folder, model, dataset, arguments)
            finally:
                with suppress(OSError):  # Windows cannot delete an open file
                    lock.unlink()


def _fit_into(folder: Path, model: Any, dataset: Dataset, arguments: argparse.Namespace,
              is_first: bool = True) -> int:
    from torch.distributed import is_initialized

    from .. import Checkpoint
    from ..training.checkpoint import UnusableCheckpoint

    checkpoint = Checkpoint(folder / "fit.checkpoint", every=1, seconds=CHECKPOINT_SECONDS)
    labels_file, model_file = folder / "labels.csv", folder / "model.reclust"
    quick_file = folder / "quick-labels.csv"
    taken = [file for file in (labels_file, quick_file, folder / "report.html")
             if file.exists() and not common.is_ours(file)]
    if model_file.exists() and not checkpoint.exists():  # the last file that a fit writes
        taken.append(model_file)
    if taken and is_first and not arguments.overwrite:
        raise FileExistsError(f"{taken[0]} exists: use another folder (-o), or --overwrite.")
    monitors = [] if sys.stderr.isatty() else [common.ProgressLines().monitor]
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit gives the same warnings
        if model.n_clusters == "auto":
            model.set_params(n_clusters=_suggestion(arguments, dataset))
            if is_first and not arguments.json:
                common.tell(model.n_clusters.answer, sys.stdout)
    try:
        if not (checkpoint.seeds() or arguments.json or is_initialized()):
            _first_answer(model, dataset, quick_file, started)
        model.fit(dataset, checkpoint=checkpoint, monitors=monitors)
    except UnusableCheckpoint:
        if not arguments.overwrite:
            raise
        checkpoint.remove()
        model.fit(dataset, checkpoint=checkpoint, monitors=monitors)
    if not is_first:
        return 0
    seconds = time.monotonic() - started
    write_text(labels_file, csv_text(_label_rows(model, dataset)))
    _write_report(model, dataset, arguments.report)
    model.save(model_file)
    planned = model.result_.settings[0].clustering
    complete = planned is None or model.result_.trained_epochs("clustering") >= planned.epochs
    if complete:
        checkpoint.remove()
        quick_file.unlink(missing_ok=True)
    _print_summary(arguments, dataset, model, seconds, complete=complete)
    if not complete:
        print("reclust: stopped early: run the same command again to continue", file=sys.stderr)
    return 0 if complete else 3


def _first_answer(model: Any, dataset: Dataset, file: Path, started: float) -> None:
    """Write the labels of a quick fit, and say how long the fit will take."""
    import numpy as np
    from sklearn.base import clone

    from ..data.accept import accept
    from ..estimators.kinds import kind_of

    if getattr(model, "effort", "quick") == "quick":
        return
    quick_started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit gives the same warnings
        if kind_of(accept(dataset, image_shape=model.image_shape)) == "table":
            return  # its fit takes seconds
        quick = clone(model).set_params(effort="quick").fit(dataset)
    seconds = time.monotonic() - quick_started
    write_text(file, csv_text(_label_rows(quick, dataset)))
    sizes, after = ", ".join(map(str, np.bincount(quick.labels_))), time.monotonic() - started
    common.tell(f"first answer, after {duration(after)}: clusters of {sizes}, in {file}\n"
                f"the fit takes about {duration(TIMES_QUICK[model.effort] * seconds)}", sys.stdout)


def _model(arguments: argparse.Namespace, *, images: bool) -> Any:
    from .. import estimators

    images = images or arguments.image_shape is not None
    options = {"image_shape": arguments.image_shape, "random_state": arguments.seed,
               "device": arguments.device,
               "time_budget": None if arguments.minutes is None else 60 * arguments.minutes}
    deep = arguments.augment != "auto" or not arguments.standardize or any(
        getattr(arguments, name) is not None
        for name in ("preset", "n_init", "pretrain_epochs", "epochs", "light"))
    algorithm = arguments.algorithm or ("idec" if deep else "reclust")
    if deep if algorithm == "reclust" else arguments.effort != "normal":
        raise ValueError("--effort is an option of reclust, --augment, --epochs, --light and the "
                         "like are options of dec, idec and dcn: they cannot be used together.")
    if algorithm == "reclust":
        return estimators.Reclust(arguments.n_clusters, effort=arguments.effort, **options)
    model = getattr(estimators, algorithm.upper())(
        arguments.n_clusters, preset=arguments.preset or ("best" if images else "everyday"),
        n_init=arguments.n_init, epochs=arguments.epochs, standardize=arguments.standardize,
        augment=None if arguments.augment == "none" else arguments.augment,
        pretrain_epochs=arguments.pretrain_epochs, **options)
    if arguments.light is not None:
        model.set_params(lens=replace(model._recipe(3).lens, light=arguments.light))
    return model


def _print_summary(arguments: argparse.Namespace, dataset: Dataset, model: Any, seconds: float, *,
                   complete: bool) -> None:
    import numpy as np

    from ..metrics import scores
    from ..report.describe import describe

    described = describe(model, model.check_input(dataset))
    summary: dict[str, Any] = {
        "samples": len(dataset), "clusters": model.n_clusters_, "complete": complete,
        "sizes": np.bincount(model.labels_).tolist(), "output": arguments.output,
        "report": str(arguments.report), "seconds": round(seconds, 1)}
    if dataset.labels is not None:
        summary |= scores(dataset.labels, model.labels_)
        baseline = scores(dataset.labels, model.baseline_.labels_)
        summary |= {f"k-means {name}": score for name, score in baseline.items()}
    if arguments.json:
        summary["descriptions"] = [cluster["description"] for cluster in described]
        show([summary], as_json=True)
        return
    print(f"{len(dataset)} samples in {model.n_clusters_} clusters of "
          f"{', '.join(map(str, summary['sizes']))}, after {duration(summary['seconds'])}")
    if dataset.labels is not None:
        for name in ("accuracy", "nmi", "ari"):
            print(f"{name:8}  {summary[name]:.3f}   (k-means: {baseline[name]:.3f})")
    for cluster in described:
        if cluster["description"]:
            heading = f"cluster {cluster['cluster']} ({cluster['share']:.0%})"
            print(printable(f"{heading}: {cluster['description']}"))
    print(f"labels and model: {arguments.output}")
    print(f"report: {arguments.report}")
    print(f"new samples: reclust predict {shlex.quote(arguments.output)} NEW_DATA")


def _predict(arguments: argparse.Namespace) -> None:
    from .. import load
    from ..data.formats.images import holds_images
    from ..utils.tensor_file import explain_errors

    if Path(arguments.model).is_dir():
        arguments.model = str(Path(arguments.model) / "model.reclust")
    common.check_paths([arguments.model, arguments.data], [arguments.output, arguments.report])
    model = load(arguments.model)
    if holds_images(arguments.data):
        arguments.size = model.preparation_.image_shape
    dataset = read_data(arguments)
    with explain_errors(arguments.model, f"cannot predict {arguments.data}"):
        rows = _label_rows(model, dataset)
    table = csv_text(rows)
    if arguments.json:
        show([{"id": str(name), "cluster": int(label), "confidence": float(confidence)}
              for name, label, confidence in rows[1:]], as_json=True)
    elif arguments.output is None:  # file names may hold bytes that are not UTF-8
        table = table.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        print(printable(table) if sys.stdout.isatty() else table, end="")
    if arguments.output is not None:
        write_text(arguments.output, table)
    _write_report(model, dataset, arguments.report)


def _show(arguments: argparse.Namespace) -> None:
    from .. import load
    from ..report.card import as_lines, card
    from ..utils.tensor_file import explain_errors

    model = load(arguments.model)
    with explain_errors(arguments.model):
        if arguments.json:
            return show([card(model)], as_json=True)
        lines = as_lines(model)
    for name, text in lines:
        print(printable(f"{name:24}{text}"))


def _write_report(model: Any, dataset: Dataset, path: str | Path | None) -> None:
    if path is not None:
        title = f"{dataset.name} in {model.n_clusters_} clusters"
        model.report(path, dataset, dataset.labels, title=title)


def _label_rows(model: Any, dataset: Dataset) -> list[tuple[Any, ...]]:
    samples = model.check_input(dataset)
    labels, confidence = model.assign(samples.array)
    ids = range(len(labels)) if samples.ids is None else samples.ids
    rows = zip(ids, labels, map("{:.3f}".format, confidence), strict=True)
    return [LABEL_COLUMNS, *rows]


def _suggestion(arguments: argparse.Namespace, dataset: Dataset, **options: Any) -> KSuggestion:
    from ..estimators.suggest_k import suggest_k

    return suggest_k(dataset, image_shape=arguments.image_shape, device=arguments.device,
                     progress=common.progress(quiet=arguments.json), **options)


def _suggest_k(arguments: argparse.Namespace) -> None:
    found = _suggestion(arguments, read_data(arguments), least=arguments.least,
                        most=arguments.most, random_state=arguments.seed)
    if arguments.json:
        show([{"k": k, "agreement": float(agreement), "suggested": k == found.k,
               "clear": found.clear}
              for k, agreement in zip(found.ks, found.agreement, strict=True)], as_json=True)
    else:
        print(found)


def number(text: str) -> int | str:
    return text if text == "auto" else int(text)
