"""What the claims are about, as numbers by seed: of tables, of curves and of times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from reclust.studies.figures.runs import CURVES
from reclust.studies.tables.runtime import cell_times
from reclust.training.history import AFTER_RESET

from .cells import SETS, Improvement, improvements
from .evidence import (
    Evidence,
    Judged,
    Numbers,
    Quantity,
    Trace,
    Verdict,
    Where,
    averaged,
    gain,
    less,
    mean,
    ratio,
    traced,
)

RESETS = tuple(range(20, 400, 20))
"""Epochs at whose start the published settings intervene."""
DEEP = ("dec", "idec", "dcn")
LOSS, RATIOS = "reconstruction_loss", "distance_ratio_histogram"
CLOSE = 18
"""Bins from here on, of 20, hold ratios of distances from 0.9 to 1."""


def last(name: str) -> Callable[[Trace], float]:
    return lambda trace: trace[name][max(trace[name])]


def at(name: str, epoch: int) -> Callable[[Trace], float]:
    """At the end of this epoch."""
    return lambda trace: trace[name].get(epoch, math.nan)


def at_resets(name: str) -> Callable[[Trace], float]:
    """The mean over epochs that begin with an intervention, at their end."""
    return lambda trace: mean(trace[name][epoch] for epoch in RESETS if epoch in trace[name])


def curve(where: Where, variant: str, name: str, summary: Callable[[Trace], float]) -> Quantity:
    return traced(CURVES, where, variant, (name,), summary)


def curve_gain(where: Where, name: str, summary: Callable[[Trace], float], *, variant: str = "brb",
               baseline: str = "none") -> Quantity:
    return less(curve(where, variant, name, summary), curve(where, baseline, name, summary))


def algorithms_mean(study: str, dataset: str, variant: str, baseline: str, *, algorithms: Sequence[str] = DEEP,
                    measure: str = "acc") -> Quantity:
    return averaged([gain(study, Where(dataset, algorithm), variant, baseline, measure) for algorithm in algorithms])


def jump(trace: Trace) -> float:
    """By how much a reset raises the reconstruction loss, in percent of what it was before; the mean over resets."""
    loss, after = trace[LOSS], trace[LOSS + AFTER_RESET]
    return mean(100 * (after[epoch] / loss[epoch - 1] - 1) for epoch in after if epoch - 1 in loss)


def left_of_jump(trace: Trace) -> float:
    """Percent of that rise still there when the next reset comes; the mean over resets."""
    loss, after = trace[LOSS], trace[LOSS + AFTER_RESET]
    pairs = [(one, next_) for one, next_ in zip(sorted(after), sorted(after)[1:], strict=False)
             if one - 1 in loss and next_ - 1 in loss]
    return mean(100 * (loss[next_ - 1] - loss[one - 1]) / (after[one] - loss[one - 1]) for one, next_ in pairs)


def later_mean(name: str) -> Callable[[Trace], float]:
    """Over all epochs from the first reset on; between those that were recorded, most of them around resets, along a line."""
    def found(trace: Trace) -> float:
        epochs = sorted(trace[name])
        return float(np.interp(range(RESETS[0], epochs[-1] + 1), epochs, [trace[name][epoch] for epoch in epochs]).mean())

    return found


def close_share_gain(where: Where) -> Quantity:
    """Percent of samples with a ratio of distances from 0.9 to 1, right after the first reset less before it."""

    def found(evidence: Evidence) -> Numbers:
        made = {}
        for seed, columns in evidence.histories(("training-curves",), where, "brb", (RATIOS, RATIOS + AFTER_RESET)).items():
            before, after = columns[RATIOS], columns[RATIOS + AFTER_RESET]
            first = after.epochs.min()
            shares = [own.values[own.epochs == epoch][0] for own, epoch in ((after, first), (before, first - 1))]
            high, low = (100 * counts[CLOSE:].sum() / counts.sum() for counts in shares)
            made[seed] = float(high - low)
        return made

    return found


def relative_gain(where: Where) -> Quantity:
    """In percent of the baseline's mean."""

    def found(evidence: Evidence) -> Numbers:
        base = mean(evidence.of("acc-table", where, "none").values())
        return {seed: 100 * value / base for seed, value in gain("acc-table", where, "brb")(evidence).items()}

    return found


def cells_improved(evidence: Evidence) -> Judged:
    """By the share of cells in which BRB has the higher mean, beside the paper's share of the same cells."""
    found = [one for one in improvements(evidence.reader) if one.dataset in SETS]
    return share("cells of five sets where BRB has the higher mean accuracy", found, 30, slack=2)


def contrastive_improved(evidence: Evidence) -> Judged:
    return share("cells of both CIFAR sets after self-labeling", improvements(evidence.reader, "self-labeling"), 6)


def share(what: str, found: Sequence[Improvement], planned: int, *, slack: int = 0) -> Judged:
    better, paper = sum(one.difference > 0 for one in found), sum(one.paper > 0 for one in found)
    expected = "at least the paper's count in the same cells" + (f", less {slack}" if slack else "")
    if not found:
        return Judged(what, expected, "no records yet", "cannot tell")
    ours, missing = f"{better} of {len(found)}, the paper has {paper} of the same {len(found)}", planned - len(found)
    if missing:
        ours += f"; {missing} of {planned} cells have no records yet"
    # Whatever the missing cells were to say, they can move either count by so many.
    verdict: Verdict = ("holds" if better >= paper + missing - slack else
                        "does not hold" if better + missing < paper - slack else "cannot tell")
    return Judged(what, expected, ours, verdict)


def deviation(variant: str) -> Quantity:
    """How far a seed's ARI is from the median of its cell, the mean over algorithms."""

    def of(algorithm: str) -> Quantity:
        def found(evidence: Evidence) -> Numbers:
            own = evidence.of("reclustering-methods", Where("usps", algorithm), variant, "ari")
            middle = median(own.values())
            return {seed: abs(number - middle) for seed, number in own.items()}
        return found

    return averaged([of(algorithm) for algorithm in DEEP])


def slower(evidence: Evidence) -> Judged:
    """One reclustering by a Gaussian mixture in units of one by k-means."""
    what, expected = "time of one reclustering on USPS, mixture / k-means", "above 2"
    seconds: dict[str, list[float]] = {"em": [], "k-means": []}
    for one in cell_times(evidence.reader, "reclustering-methods") if "reclustering-methods" in evidence.studies else ():
        if one.dataset == "usps" and one.variant in seconds:
            seconds[one.variant].append(one.parts["clustering"])
    if not all(seconds.values()):
        return Judged(what, expected, "no records yet: reclustering-methods", "cannot tell")
    times = mean(seconds["em"]) / mean(seconds["k-means"])
    return Judged(what, expected, f"{times:.1f}", "holds" if times > 2 else "does not hold")


def overhead(variant: str, bound: float) -> Callable[[Evidence], Judged]:
    def judged(evidence: Evidence) -> Judged:
        what, expected = f"what BRB with {variant} adds to IDEC on MNIST, in percent", f"at most {bound:g}"
        found = cell_times(evidence.reader, "runtime") if "runtime" in evidence.studies else []
        ours = next((one.overhead for one in found if (one.dataset, one.variant) == ("mnist", variant)), math.nan)
        if math.isnan(ours):
            return Judged(what, expected, "no records yet: runtime", "cannot tell")
        return Judged(what, expected, f"{ours:.2f}", "holds" if ours <= bound else "does not hold")

    return judged


def unlike_brb(where: Where, name: str, summary: Callable[[Trace], float]) -> Quantity:
    """A number of curves with perturbation alone, in units of BRB's."""
    alone, brb = (traced(("soft-reset-components",), where, variant, (name,), summary) for variant in ("perturb", "brb"))
    return ratio(alone, brb)
