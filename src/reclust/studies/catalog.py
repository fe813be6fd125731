"""The named studies: one for every table and figure of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from ..interventions import Every, KaimingNoise, Recluster, ResetMomentum, SoftReset, Step
from ..kmeans import KMeans, KMeansPlusPlus
from ..presets import PAPER_INTERVENTIONS, PAPER_SEEDS
from .spec import Study, Variant

_CATALOG: dict[str, Callable[[], Study]] = {}
RESET = SoftReset(0.8, noise=KaimingNoise())
RECLUSTER = Recluster(rows="first")
MOMENTUM = ResetMomentum()


def names() -> list[str]:
    return list(_CATALOG)


def named(name: str) -> Study:
    """A study by its name; NAME-mini is its small form."""
    known = name.removesuffix("-mini")
    if known not in _CATALOG:
        raise ValueError(f"There is no study named {name!r}: choose among {', '.join(_CATALOG)}, or give a file NAME.toml.")
    study = _CATALOG[known]()
    return study.mini() if name != known else study


def study(make: Callable[[], Study]) -> Callable[[], Study]:
    """Decorator: a function without arguments becomes an entry of the catalog under its study's name."""
    _CATALOG[make().name] = make
    return make


def paper_variants(*names: str) -> tuple[Variant, ...]:
    return tuple(Variant(name, PAPER_INTERVENTIONS[name]) for name in names)


def every(*steps: Step, interval: int = 20) -> Every:
    return Every(interval, steps)


ALL_FOUR = paper_variants("none", "brb", "recluster", "reset")


@study
def acc_table() -> Study:
    return Study("acc-table", ALL_FOUR, pretrained=(False, True),
                 about="The main table: 24 configurations on six sets, ten seeds; ACC, NMI and ARI.")


@study
def from_scratch() -> Study:
    return Study("from-scratch", ALL_FOUR, pretrained=(False,), about="The part of the main table without pretraining.")


@study
def sensitivity() -> Study:
    def variants() -> Iterator[Variant]:
        for lr, interval, keep in product((5e-3, 1e-3, 5e-4, 1e-4), (5, 10, 20, 40), (0.6, 0.7, 0.8, 0.9)):
            brb = every(SoftReset(keep, noise=KaimingNoise()), RECLUSTER, MOMENTUM, interval=interval)
            yield Variant(f"keep={keep:g} T={interval} lr={lr:g}", brb, changes={"clustering": {"lr": lr}},
                          factors={"keep": keep, "interval": interval, "lr": lr})

    corners = tuple(f"keep={keep:g} T={interval} lr={lr:g}"
                    for lr, interval, keep in product((5e-3, 1e-3), (10, 20), (0.6, 0.8)))
    return Study("sensitivity", tuple(variants()), datasets=("mnist", "usps", "optdigits"), seeds=PAPER_SEEDS[:5],
                 pretraining_seeds=PAPER_SEEDS, small_variants=corners,
                 about="Reset factor × interval × learning rate, five seeds.")


@study
def embedding_reset() -> Study:
    """Blocks are named in the order of the encoder's layers, the last one 'embedding'."""
    everywhere = SoftReset(0.8, blocks=("layer1", "layer2", "layer3", "embedding"), noise=KaimingNoise())
    variants = (*paper_variants("brb"), Variant("embedding reset", every(everywhere, RECLUSTER, MOMENTUM)))
    return Study("embedding-reset", variants, datasets=("gtsrb", "optdigits", "usps", "mnist"),
                 about="BRB with and without a reset of the embedding layer.")


@study
def momentum_reset() -> Study:
    return Study("momentum-reset", (
        *paper_variants("brb"),
        Variant("no momentum reset", every(RESET, RECLUSTER)),
        Variant("step reset", every(RESET, RECLUSTER, ResetMomentum(steps=True))),
    ), datasets=("gtsrb", "optdigits", "usps", "mnist"), algorithms=("dec", "idec"),
        about="BRB without the momentum reset, and with a reset of the optimizer's step count.")


@study
def subsample_size() -> Study:
    variants = tuple(Variant(f"{rows} rows", every(RESET, Recluster(subsample=rows, rows="first"), MOMENTUM),
                             factors={"subsample": rows}) for rows in (700, 7_000, 17_500, 35_000, 70_000))
    return Study("subsample-size", variants, datasets=("mnist",), about="How many samples reclustering looks at.")


@study
def runtime() -> Study:
    """One run a group, because time is measured."""
    sizes = tuple(Variant(f"{rows} rows", every(RESET, Recluster(subsample=rows, rows="first"), MOMENTUM),
                          factors={"subsample": rows}) for rows in (700, 7_000, 17_500, 35_000, 70_000))
    methods = tuple(Variant(name, every(RESET, Recluster(method, rows="first"), MOMENTUM), factors={"method": name})
                    for name, method in (("k-means", KMeans()), ("k-means++", KMeansPlusPlus())))
    return Study("runtime", (*paper_variants("none"), *sizes, *methods), datasets=("mnist",), algorithms=("idec",),
                 seeds=PAPER_SEEDS[:1], pretraining_seeds=PAPER_SEEDS, largest_group=1,
                 about="Seconds by part, one run at a time.")
