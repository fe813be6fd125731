"""All three stages on half of CIFAR-10, on one GPU: SimCLR, then DEC, IDEC and DCN with and without BRB, then self-labeling.

    python benchmarks/cifar_half.py DATA/cifar10_half.npz --out FOLDER --pretrain-epochs 200 --epochs 60 --budget 1500
    python benchmarks/cifar_half.py --timing

Trained on the train split, scored on the test split. The pretrained encoder is kept in FOLDER, its weights in bfloat16, and a
later call goes on from it; parts that the record in FOLDER has whole are not computed again. Where time runs out, pretraining
can be continued by a later call, and other parts are begun anew. `--timing` measures an epoch of SimCLR and one of IDEC on
50,000 random images instead.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _records import RECORDS, write_record

from reclust import (
    Checkpoint,
    Execution,
    Progress,
    ReclustWarning,
    ResNet,
    Result,
    Schedule,
    SelfLabel,
    Settings,
    metrics,
    self_label,
    train,
)
from reclust.data import Prepared, load
from reclust.data.inputs import as_inputs
from reclust.estimators import presets
from reclust.utils.device import choose_device
from reclust.utils.values import to_json

ALGORITHMS = ("dec", "idec", "dcn")
BUT_PROJECTOR = "brb but projector"
INTERVENTIONS = ("none", "brb", BUT_PROJECTOR)
"""The last leaves the projector alone at a reset: the authors' program does, their text resets it."""


def main() -> None:
    given = options()
    if given.timing:
        timing(given)
    elif not given.data.exists():
        print(f"Left out: there is no {given.data}, half of CIFAR-10.")
    else:
        Stages(given).run()


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path("cifar10_half.npz"), help="images, labels and split")
    parser.add_argument("--out", type=Path, default=RECORDS, help="where the encoder and the record are kept")
    parser.add_argument("--seed", type=int, default=400)
    parser.add_argument("--pretrain-epochs", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--label-epochs", type=int, default=30, help="of self-labeling, after its warm-up")
    parser.add_argument("--head-epochs", type=int, default=20, help="of its warm-up")
    parser.add_argument("--evenness", type=float, nargs="+", default=[0.0, SelfLabel().evenness], help="0 is published")
    parser.add_argument("--warmup", type=int, default=5, help="epochs over which learning rates rise")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS), choices=ALGORITHMS)
    parser.add_argument("--interventions", nargs="+", default=["none", "brb"], choices=INTERVENTIONS)
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds for everything")
    parser.add_argument("--width", type=int, default=64, help="channels of the first ResNet block")
    parser.add_argument("--limit", type=int, default=None, help="number of images per split")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--compile", default="auto", choices=("auto", "always", "never"))
    parser.add_argument("--timing", action="store_true")
    parser.add_argument("--timing-images", type=int, default=50_000)
    parser.add_argument("--timing-epochs", type=int, default=4)
    return parser.parse_args()


class Stages:
    """One seed through all stages, as far as the budget reaches."""

    def __init__(self, given: argparse.Namespace, name: str | None = None) -> None:
        self.given, self.end = given, time.monotonic() + given.budget
        self.device = choose_device(given.device)
        self.train, self.test, self.y_train, self.y_test = splits(given.data, given.limit)
        self.name = name or f"cifar_half_{given.seed}"
        given.out.mkdir(parents=True, exist_ok=True)
        record = given.out / f"{self.name}.json"
        self.measured: dict[str, Any] = json.loads(record.read_text())["measured"] if record.exists() else {}

    def run(self) -> None:
        encoder = self.pretrained()
        if encoder is None:
            return
        for algorithm in self.given.algorithms:
            for intervention in self.given.interventions:
                self.cluster(encoder, algorithm, intervention)

    def pretrained(self) -> Result | None:
        given, path = self.given, self.given.out / f"{self.name}_encoder.reclust"
        settings = self.settings("idec", "brb")
        if not path.exists():
            checkpoint = Checkpoint(given.out / f"{self.name}_pretraining.ckpt", every=20)
            made = self.part("simclr", settings, lambda execution: train(
                self.train, replace(settings, clustering=None), seeds=[given.seed], monitors=[Progress()], execution=execution,
                checkpoint=checkpoint))
            if made is None or not self.done("simclr"):
                return None
            replace(made, parameters={name: stack.to(torch.bfloat16) for name, stack in made.parameters.items()}).save(path)
            checkpoint.remove()
        encoder = Result.load(path)
        still = replace(settings, clustering=Schedule(epochs=0), intervention=None)
        self.part("simclr + k-means", still, lambda execution: train(
            self.train, still, seeds=[given.seed], start=encoder, execution=execution))
        return encoder

    def cluster(self, encoder: Result, algorithm: str, intervention: str) -> None:
        given, settings = self.given, self.settings(algorithm, intervention)
        name, how = f"{algorithm}, {intervention}", presets.paper_self_labeling("cifar10", algorithm)  # type: ignore[arg-type]
        how = replace(how, warmup=replace(how.warmup, epochs=given.head_epochs),
                      training=replace(how.training, epochs=given.label_epochs))
        ways = {f"{name}, self-labeled" + (" evenly" if evenness else ""): replace(how, evenness=evenness)
                for evenness in given.evenness}
        kept = given.out / f"{self.name}_{algorithm}_{intervention.replace(' ', '_')}.reclust"
        clustered = self.part(name, settings, lambda execution: train(
            self.train, settings, seeds=[given.seed], start=encoder, monitors=[Progress()], execution=execution))
        if clustered is not None and self.done(name):
            clustered.save(kept)
        if kept.exists():
            start = Result.load(kept)
            for labeled, way in ways.items():
                self.part(labeled, way, lambda execution, way=way: self_label(
                    self.train, start, way, monitors=[Progress()], execution=execution))
            if all(map(self.done, ways)):
                kept.unlink()

    def done(self, name: str) -> bool:
        """Whether the record has this part, with all its epochs."""
        return name in self.measured and self.measured[name]["finished"]

    def settings(self, algorithm: str, intervention: str) -> Settings:
        given = self.given
        base = presets.paper("cifar10", algorithm, intervention="none" if intervention == "none" else "brb")  # type: ignore[arg-type]
        if intervention == BUT_PROJECTOR:
            reset, *others = base.intervention.steps  # type: ignore[union-attr]
            keep = {block: share for block, share in presets.RESNET_RESET.items() if block != "projector"}
            base = replace(base, intervention=replace(base.intervention, steps=(replace(reset, keep=keep), *others)))  # type: ignore[type-var]
        assert base.pretraining is not None and base.clustering is not None
        common = {"batch_size": given.batch, "warmup_epochs": given.warmup}
        return replace(
            base, representation=replace(base.representation, backbone=ResNet(width=given.width)),  # type: ignore[type-var]
            pretraining=replace(base.pretraining, epochs=given.pretrain_epochs, **common),
            clustering=replace(base.clustering, epochs=given.epochs, **common),
        )

    def part(self, name: str, settings: Any, compute: Callable[[Execution], Result]) -> Result | None:
        """Compute one part in what time is left, score it on both splits and write the record; None if it was there already
        or if there is no time."""
        left = self.end - time.monotonic()
        if self.done(name) or left <= 0:
            return None
        execution = Execution(device=self.given.device, precision=self.given.precision, compile=self.given.compile,
                              time_budget=None if left == float("inf") else left)
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", ReclustWarning)
            result = compute(execution)
        messages = [str(one.message) for one in said if issubclass(one.category, ReclustWarning)]
        found: dict[str, Any] = {
            "finished": not any("time budget" in message for message in messages), "seconds": time.perf_counter() - started,
            "parts": result.seconds, "settings": to_json(settings), "warnings": messages,
        }
        if result.labels is not None:
            model = result.model(0).to(self.device, torch.float32)
            test = model.predict(as_inputs(self.test).to(self.device, torch.float32))
            found |= {"train": metrics.scores(self.y_train, result.labels[0]), "test": metrics.scores(self.y_test, test)}
        self.measured[name] = found
        elsewhere = ("data", "out", "budget", "timing", "timing_images", "timing_epochs",  # says nothing of the numbers
                     "algorithms", "interventions", "evenness")  # said by the parts, which several calls may have computed
        settings_of_run = {key: value for key, value in vars(self.given).items() if key not in elsewhere}
        write_record(self.name, settings_of_run, self.measured, folder=self.given.out)
        scores = "".join(f"  {split} " + " ".join(f"{name} {100 * score:.1f}" for name, score in found[split].items())
                         for split in ("train", "test") if split in found)
        print(f"{name}: {found['seconds']:.0f} s{scores}", *messages, sep="\n  ", flush=True)
        return result


def splits(path: Path, limit: int | None) -> tuple[Prepared, Prepared, np.ndarray, np.ndarray]:
    """Both splits with the training split's mean and deviation, and their labels."""
    whole = load(path.stem, folder=path.parent, download=False)
    parts = [part.take(slice(limit)) for part in (whole.train, whole.test)]
    train_part, test_part = (presets.paper_data(part) for part in parts)
    assert parts[0].labels is not None and parts[1].labels is not None
    return train_part, Prepared(test_part.samples, train_part.mean, train_part.std), parts[0].labels, parts[1].labels


def timing(given: argparse.Namespace) -> None:
    """Seconds of one epoch of SimCLR and of one of IDEC, the least of a few, without the first."""
    device = choose_device(given.device)
    images = torch.rand(given.timing_images, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    base = presets.paper("cifar10", "idec")
    assert base.pretraining is not None and base.clustering is not None
    schedule = {"epochs": given.timing_epochs, "batch_size": given.batch, "warmup_epochs": 0}
    representation = replace(base.representation, backbone=ResNet(width=given.width))  # type: ignore[type-var]
    runs = {
        "simclr": replace(base, pretraining=replace(base.pretraining, **schedule), clustering=None),
        "idec": replace(base, pretraining=None, clustering=replace(base.clustering, **schedule), intervention=None),
    }
    execution = Execution(device=given.device, precision=given.precision, compile=given.compile)
    measured = {}
    for name, settings in runs.items():
        ends: list[float] = []

        def monitor(snapshot: Any, ends: list[float] = ends) -> None:
            if snapshot.moment == "epoch":
                if device.type == "cuda":
                    torch.cuda.synchronize(device)
                ends.append(time.perf_counter())

        train(images, replace(settings, representation=representation), seeds=[0], monitors=[monitor], execution=execution)
        seconds = float(np.diff(ends).min())
        steps = given.timing_images // given.batch
        measured[name] = {"seconds_an_epoch": seconds, "milliseconds_a_step": 1000 * seconds / steps}
        print(f"{name}: {seconds:.2f} s an epoch, {measured[name]['milliseconds_a_step']:.1f} ms a step", flush=True)
    told = ("timing_images", "timing_epochs", "batch", "width", "precision", "compile")
    settings_of_run = {name: getattr(given, name) for name in told}
    print(f"record: {write_record('contrastive_epoch', settings_of_run, measured, folder=given.out)}")


if __name__ == "__main__":
    main()
