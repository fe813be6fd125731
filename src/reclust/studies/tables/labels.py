"""Names and colors of data sets, algorithms and variants in tables and figures."""

from collections.abc import Mapping, Sequence
from typing import Any

DEEP = ("dec", "idec", "dcn")
DATASETS = {"cifar100_20": "CIFAR100-20", "kmnist_test": "KMNIST test part", "digits": "digits"}
VARIANTS = {"brb": "BRB", "recluster": "Recluster", "reset": "Reset", "em": "EM"}
MEASURES = {
    "acc": "ACC", "nmi": "NMI", "ari": "ARI", "accuracy": "accuracy (%)",
    "label_change": "label change (%)", "intra_class_distance": "intra-class distance",
    "inter_class_distance": "inter-class distance",
    "silhouette_predicted": "silhouette, predicted labels",
}
PERCENT = frozenset({"acc", "nmi", "ari", "accuracy"})  # between 0 and 1, shown in percent
# Okabe and Ito's palette, safe for color-blind readers.
COLORS = {"none": "#0072B2", "brb": "#000000", "recluster": "#E69F00", "reset": "#009E73"}
OTHER_COLORS = ("#CC79A7", "#56B4E9", "#D55E00", "#999999", "#F0E442")
STYLES = ("--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))


def dataset(name: str) -> str:
    return DATASETS.get(name, name.upper())


def algorithm(name: str) -> str:
    return name.upper() if name in DEEP else name


def variant(name: str) -> str:
    return VARIANTS.get(name, name)


def method(algorithm_name: str, variant_name: str, *, pretrained: bool = False) -> str:
    """Name a row as the paper does: DEC, DEC+BRB, DEC+BRB+Pretrain."""
    parts = [algorithm(algorithm_name)]
    parts += [] if variant_name == "none" else [variant(variant_name)]
    parts += ["Pretrain"] if pretrained and algorithm_name in DEEP else []
    return "+".join(parts)


def measure(name: str) -> str:
    return MEASURES.get(name, name.replace("_", " "))


def value(column: str, content: Any) -> str:
    """Format any entry of a study's row as a heading."""
    if column in ("dataset", "algorithm", "variant"):
        return {"dataset": dataset, "algorithm": algorithm, "variant": variant}[column](content)
    if column == "pretrained":
        return "with pretraining" if content else "from scratch"
    named = f"{content:g}" if isinstance(content, float) else str(content)
    return named if column == "method" else f"{column} {named}"


def colors(variants: Sequence[str]) -> Mapping[str, str]:
    """Assign a color to each variant; the paper's variants keep theirs in every figure."""
    rest = iter(OTHER_COLORS * (1 + len(variants) // len(OTHER_COLORS)))
    return {name: COLORS[name] if name in COLORS else next(rest) for name in variants}
