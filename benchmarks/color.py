"""CIFAR-10 and CIFAR-100-20 through all stages, in pieces of a few minutes: the cells of the paper's contrastive tables, and SCAN and SeCu.

    python benchmarks/color.py DATA/cifar10.npz --dataset cifar10 --cells a c d e --out FOLDER --minutes 9 [--length 0.2] [--seed 400]
    python benchmarks/color.py --timing

Trained on the train split, scored on the test split. Cells: a IDEC and DCN, c DEC, d SCAN and SeCu, all without and with BRB; e the blocks
that BRB resets. Cells of a, c and d are self-labeled, with `--as-published` also as published. `--length` shortens all stages alike. Every
part continues from its checkpoint in FOLDER; the record there says which are whole. The pretrained encoder is kept in bfloat16, also in
pieces of 15 MB (`*.piece0`, ...), from which another machine can put it together again. `--timing` measures an epoch of SimCLR and one of
IDEC on 50,000 random images instead.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _records import RECORDS, write_record

from reclust import (
    BRB,
    Checkpoint,
    Execution,
    Progress,
    ReclustWarning,
    ResNet,
    Result,
    SCANObjective,
    Schedule,
    SeCuObjective,
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

PIECE = 15 * 2**20
CELLS = {"a": ("idec", "dcn"), "c": ("dec",), "d": ("scan", "secu"), "e": ("idec",)}
BLOCKS = {"none": (), "block 4": ("block4",), "blocks 3 and 4": ("block3", "block4"),
          "all": ("stem", "block1", "block2", "block3", "block4")}
NOT_RECORDED = ("data", "out", "minutes", "cells", "timing", "timing_images", "timing_epochs", "as_published", "device")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path("cifar10.npz"), help="NAME.npz with images, labels and split")
    parser.add_argument("--dataset", default="cifar10", choices=presets.CONTRASTIVE_CLUSTERS)
    parser.add_argument("--cells", nargs="*", default=["a"], choices=CELLS, help="none: pretraining and k-means only")
    parser.add_argument("--as-published", action="store_true", help="self-label also as published")
    parser.add_argument("--length", type=float, default=1.0, help="share of the published epochs")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--reading", default="program", choices=("program", "text"))
    parser.add_argument("--out", type=Path, default=RECORDS, help="where encoder, checkpoints and record are kept")
    parser.add_argument("--seed", type=int, default=400)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--label-batch", type=int, default=1000)
    parser.add_argument("--width", type=int, default=64, help="channels of the first ResNet block")
    parser.add_argument("--limit", type=int, default=None, help="number of images per split")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--compile", default="auto", choices=("auto", "always", "never"))
    parser.add_argument("--timing", action="store_true")
    parser.add_argument("--timing-images", type=int, default=50_000)
    parser.add_argument("--timing-epochs", type=int, default=4)
    return parser.parse_args()


def epochs(published: int, length: float) -> int:
    return max(1, round(published * length))


class Color:
    """One seed of one set through the chosen cells, as far as the minutes reach."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.end = given, time.monotonic() + 60 * given.minutes
        self.device = choose_device(given.device)
        self.train, self.test, self.y_train, self.y_test = splits(given.data, given.limit)
        self.name = f"color_{given.dataset}_{given.seed}" + (f"_{given.length:g}" if given.length != 1 else "")
        given.out.mkdir(parents=True, exist_ok=True)
        self.encoder = given.out / f"{self.name}_encoder.reclust"
        join(self.encoder)
        record = given.out / f"{self.name}.json"
        self.measured: dict[str, Any] = json.loads(record.read_text())["measured"] if record.exists() else {}

    def run(self) -> None:
        encoder = self.pretrained()
        if encoder is None:
            return
        split(self.encoder)
        for cell in self.given.cells:
            for name, settings in self.cells(cell):
                self.cluster_and_label(encoder, name, settings, labeled=cell != "e")

    def pretrained(self) -> Result | None:
        given, settings = self.given, self.settings("idec", "none")
        if not self.encoder.exists():
            checkpoint = Checkpoint(given.out / f"{self.name}_pretraining.ckpt", every=20)
            made = self.part("simclr", settings, lambda execution: train(
                self.train, replace(settings, clustering=None), seeds=[given.seed], monitors=[Progress()], execution=execution,
                checkpoint=checkpoint))
            if made is None or not self.done("simclr"):
                return None
            replace(made, parameters={name: stack.to(torch.bfloat16) for name, stack in made.parameters.items()}).save(self.encoder)
            checkpoint.remove()
        encoder = Result.load(self.encoder)
        still = replace(settings, clustering=Schedule(epochs=0))
        self.part("simclr + k-means", still, lambda execution: train(
            self.train, still, seeds=[given.seed], start=encoder, execution=execution))
        return encoder

    def done(self, name: str) -> bool:
        """Whether the record has this part, with all its epochs."""
        return name in self.measured and self.measured[name]["finished"]

    def part(self, name: str, settings: Any, compute: Callable[[Execution], Result]) -> Result | None:
        """Compute a part in the time that is left, score it on both splits and record it; None if it is there or there is no time."""
        left = self.end - time.monotonic()
        if self.done(name) or left <= 0:
            return None
        execution = Execution(device=self.given.device, precision=self.given.precision, compile=self.given.compile, time_budget=left)
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ReclustWarning)
            result = compute(execution)
        messages = [str(warning.message) for warning in caught if issubclass(warning.category, ReclustWarning)]
        found: dict[str, Any] = {
            "finished": not any("time budget" in message for message in messages), "seconds": time.perf_counter() - started,
            "parts": result.seconds, "settings": to_json(settings), "warnings": messages,
        }
        if result.labels is not None:
            model = result.model(0).to(self.device, torch.float32)
            test = model.predict(as_inputs(self.test).to(self.device, torch.float32))
            found |= {"train": metrics.scores(self.y_train, result.labels[0]), "test": metrics.scores(self.y_test, test)}
        self.measured[name] = found
        settings_of_run = {key: option for key, option in vars(self.given).items() if key not in NOT_RECORDED}
        write_record(self.name, settings_of_run, self.measured, folder=self.given.out)
        scores = "".join(f"  {split} " + " ".join(f"{name} {100 * score:.1f}" for name, score in found[split].items())
                         for split in ("train", "test") if split in found)
        print(f"{name}: {found['seconds']:.0f} s{scores}", *messages, sep="\n  ", flush=True)
        return result

    def cells(self, cell: str) -> Iterator[tuple[str, Settings]]:
        for algorithm in CELLS[cell]:
            if cell != "e":
                for intervention in ("none", "brb"):
                    yield f"{algorithm}, {intervention}", self.settings(algorithm, intervention)
                continue
            base = self.settings(algorithm, "none")
            for blocks, reset in BLOCKS.items():
                for mlp in ((), ("mlp",)):
                    keep = dict.fromkeys((*reset, *mlp), 0.8)
                    name = f"{algorithm}, keep 0.8 of {blocks}" + (" and mlp" if mlp else "")
                    yield name, replace(base, intervention=BRB(10, keep) if keep else None)

    def settings(self, algorithm: str, intervention: str) -> Settings:
        given = self.given
        published = algorithm if algorithm in presets.OBJECTIVES else "idec"
        base = presets.paper(given.dataset, published, intervention=intervention, reading=given.reading)  # type: ignore[arg-type]
        assert base.pretraining is not None and base.clustering is not None
        backbone = replace(base.representation.backbone, width=given.width) if given.width != 64 else base.representation.backbone  # type: ignore[attr-defined]
        assert isinstance(backbone, ResNet)

        def shorter(schedule: Schedule) -> Schedule:
            return replace(schedule, epochs=epochs(schedule.epochs, given.length), batch_size=given.batch,
                           warmup_epochs=round(schedule.warmup_epochs * given.length))

        clustering = base.clustering
        if algorithm == "scan":  # neighbors of the pretrained embedding
            base = replace(base, objective=SCANObjective())
            clustering = Schedule(epochs=200, lr=1e-4, views=("augmented", "neighbor"), neighbors=20, neighbors_in="embedding")
        elif algorithm == "secu":
            base = replace(base, objective=SeCuObjective())
            clustering = Schedule(epochs=400, lr=2e-4, views=("augmented", "augmented"), warmup_epochs=20)
        return replace(base, representation=replace(base.representation, backbone=backbone),  # type: ignore[type-var]
                       pretraining=shorter(base.pretraining), clustering=shorter(clustering))

    def cluster_and_label(self, encoder: Result, name: str, settings: Settings, *, labeled: bool) -> None:
        given, file = self.given, f"{self.name}_{name.replace(', ', '_').replace(' ', '-')}"
        kept, checkpoint = given.out / f"{file}.reclust", Checkpoint(given.out / f"{file}.ckpt", every=10, seconds=60)
        ways = self.ways(name) if labeled else {}
        clustered = self.part(name, settings, lambda execution: train(
            self.train, settings, seeds=[given.seed], start=encoder, monitors=[Progress()], execution=execution, checkpoint=checkpoint))
        if clustered is not None and self.done(name):
            checkpoint.remove()
            clustered.save(kept)
        if not kept.exists():
            return
        start = Result.load(kept)
        for number, (labeled_name, way) in enumerate(ways.items()):
            state = Checkpoint(given.out / f"{file}_{number}.ckpt", every=10, seconds=60)
            self.part(labeled_name, way, lambda execution, way=way, state=state: self_label(
                self.train, start, way, monitors=[Progress()], execution=execution, checkpoint=state))
            if self.done(labeled_name):
                state.remove()
        if all(map(self.done, ways)):
            kept.unlink()

    def ways(self, name: str) -> dict[str, SelfLabel]:
        """Return self-labeling of this length by our default, and as published if asked to."""
        algorithm, given = name.partition(",")[0], self.given
        published = presets.paper_self_labeling(given.dataset, algorithm if algorithm in presets.OBJECTIVES else "idec")  # type: ignore[arg-type]
        published = replace(published, warmup=replace(published.warmup, epochs=epochs(20, given.length), batch_size=given.label_batch),
                            training=replace(published.training, epochs=epochs(200, given.length), batch_size=given.label_batch))
        ways = {f"{name}, self-labeled": SelfLabel(warmup=published.warmup, training=published.training)}
        return ways | ({f"{name}, self-labeled as published": published} if given.as_published else {})


def splits(path: Path, limit: int | None) -> tuple[Prepared, Prepared, np.ndarray, np.ndarray]:
    """Return both splits with the training split's mean and deviation, and their labels."""
    whole = load(path.stem, folder=path.parent, download=False)
    parts = [part.take(slice(limit)) for part in (whole.train, whole.test)]
    train_part, test_part = (presets.paper_data(part) for part in parts)
    assert parts[0].labels is not None and parts[1].labels is not None
    return train_part, Prepared(test_part.samples, train_part.mean, train_part.std), parts[0].labels, parts[1].labels


def split(path: Path) -> None:
    """Write a file again in pieces that are small enough to be carried to another machine."""
    content = path.read_bytes()
    for number, start in enumerate(range(0, len(content), PIECE)):
        Path(f"{path}.piece{number}").write_bytes(content[start : start + PIECE])


def join(path: Path) -> None:
    """Put a file together from its pieces, if there are any and it is missing."""
    pieces = sorted(path.parent.glob(f"{path.name}.piece*"), key=lambda piece: int(piece.name.rpartition("piece")[2]))
    if pieces and not path.exists():
        path.write_bytes(b"".join(piece.read_bytes() for piece in pieces))


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
    given = options()
    if given.timing:
        timing(given)
    elif not given.data.exists():
        print(f"Left out: there is no {given.data}.")
    else:
        Color(given).run()
