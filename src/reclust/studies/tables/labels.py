"""How data sets, algorithms and variants are called and coloured in tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DEEP = ("dec", "idec", "dcn")
DATASETS = {"cifar100_20": "CIFAR100-20", "kmnist_test": "KMNIST test part", "digits": "digits"}
VARIANTS = {"brb": "BRB", "recluster": "Recluster", "reset": "Reset", "em": "EM"}
MEASURES = {
    "acc": "ACC", "nmi": "NMI", "ari": "ARI", "accuracy": "accuracy (%)", "label_change": "label change (%)",
    "intra_class_distance": "intra-class distance", "inter_class_distance": "inter-class distance", "silhouette": "silhouette",
    "silhouette_predicted": "silhouette, predicted labels", "reconstruction_loss": "reconstruction loss",
}
PERCENT = frozenset({"acc", "nmi", "ari", "accuracy"})
"""Measures between 0 and 1 that are shown in percent."""

COLORS = {"none": "#0072B2", "brb": "#000000", "recluster": "#E69F00", "reset": "#009E73"}
OTHERS = ("#CC79A7", "#56B4E9", "#D55E00", "#999999", "#F0E442")
"""Okabe and Ito's palette: told apart with every kind of colour vision."""
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))


def dataset(name: str) -> str:
    return DATASETS.get(name, name.upper())


def algorithm(name: str) -> str:
    return name.upper() if name in DEEP else name


def variant(name: str) -> str:
    """As it stands after an algorithm's name: BRB, Reset, …"""
    return VARIANTS.get(name, name)


def method(algorithm_name: str, variant_name: str, *, pretrained: bool = False) -> str:
    """The paper's way to name a row: DEC, DEC+BRB, DEC+BRB+Pretrain."""
    parts = [algorithm(algorithm_name), *([] if variant_name == "none" else [variant(variant_name)]),
             *(["Pretrain"] if pretrained and algorithm_name in DEEP else [])]
    return "+".join(parts)


def measure(name: str) -> str:
    return MEASURES.get(name, name.replace("_", " "))


def value(column: str, given: Any) -> str:
    """Any entry of a row of a study, as a heading."""
    if column == "dataset":
        return dataset(given)
    if column == "algorithm":
        return algorithm(given)
    if column == "variant":
        return variant(given)
    if column == "pretrained":
        return "with pretraining" if given else "from scratch"
    named = f"{given:g}" if isinstance(given, float) else str(given)
    return named if column == "method" else f"{column} {named}"


def colors(variants: Sequence[str]) -> Mapping[str, str]:
    """A colour for each variant; those of the paper always have the same."""
    rest = iter(OTHERS * (1 + len(variants) // len(OTHERS)))
    return {name: COLORS[name] if name in COLORS else next(rest) for name in variants}
