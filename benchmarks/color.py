"""CIFAR-10 and CIFAR-100-20 through all stages, in pieces of a few minutes: the cells of the paper's contrastive tables, and SCAN and SeCu.

    python benchmarks/color.py DATA/cifar10.npz --dataset cifar10 --cells a c d e --out FOLDER --minutes 9 [--length 0.25] [--seed 400]

Cells: a DCN and IDEC, c DEC, d SCAN and SeCu, all without and with BRB; e the blocks that BRB resets. Cells of a, c and d are self-labeled
by our default and as published. `--length` shortens all stages alike. Every part continues from its checkpoint in FOLDER; the record there
says which are whole. The pretrained encoder is kept in bfloat16, also in pieces of 15 MB (`*.piece0`, ...), from which another machine can
put it together again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from _records import RECORDS
from cifar_half import Stages

from reclust import (
    BRB,
    Checkpoint,
    Progress,
    ResNet,
    Result,
    SCANObjective,
    Schedule,
    SeCuObjective,
    SelfLabel,
    Settings,
    self_label,
    train,
)
from reclust.estimators import presets

PIECE = 15 * 2**20
CELLS = {"a": ("dcn", "idec"), "c": ("dec",), "d": ("scan", "secu"), "e": ("idec",)}
BLOCKS = {"none": (), "block 4": ("block4",), "blocks 3 and 4": ("block3", "block4"),
          "all": ("stem", "block1", "block2", "block3", "block4")}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="NAME.npz with images, labels and split")
    parser.add_argument("--dataset", default="cifar10", choices=presets.CONTRASTIVE_CLUSTERS)
    parser.add_argument("--cells", nargs="*", default=["a"], choices=CELLS, help="none: pretraining and k-means only")
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
    given = parser.parse_args()
    given.budget, given.pretrain_epochs = 60 * given.minutes, epochs(1000, given.length)
    return given


def epochs(published: int, length: float) -> int:
    return max(1, round(published * length))


class Color(Stages):
    """One seed of one set through the chosen cells, as far as the minutes reach."""

    def __init__(self, given: argparse.Namespace) -> None:
        name = f"color_{given.dataset}_{given.seed}" + (f"_{given.length:g}" if given.length != 1 else "")
        super().__init__(given, name)
        join(self.encoder)

    @property
    def encoder(self) -> Path:
        return self.given.out / f"{self.name}_encoder.reclust"

    def run(self) -> None:
        encoder = self.pretrained()
        if encoder is None:
            return
        split(self.encoder)
        for cell in self.given.cells:
            for name, settings in self.cells(cell):
                self.cluster_and_label(encoder, name, settings, labeled=cell != "e")

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
            clustering = Schedule(epochs=400, lr=1e-3, views=("augmented", "augmented"), warmup_epochs=20)
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
        """Self-labeling by our default and as published, of this length."""
        algorithm, given = name.partition(",")[0], self.given
        published = presets.paper_self_labeling(given.dataset, algorithm if algorithm in presets.OBJECTIVES else "idec")  # type: ignore[arg-type]
        published = replace(published, warmup=replace(published.warmup, epochs=epochs(20, given.length), batch_size=given.label_batch),
                            training=replace(published.training, epochs=epochs(200, given.length), batch_size=given.label_batch))
        return {f"{name}, self-labeled": SelfLabel(warmup=published.warmup, training=published.training),
                f"{name}, self-labeled as published": published}


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


if __name__ == "__main__":
    Color(options()).run()
