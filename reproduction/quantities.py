"""Quantities that the claims are about, as numbers by seed: scores, curves and times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from reclust.studies.figures.runs import CURVES
from reclust.studies.tables.labels import DEEP
from reclust.studies.tables.runtime import cell_times
from reclust.training.history import AFTER_RESET

from .cells import MAIN, SETS, Improvement, improvements
from .evidence import (
    CheckResult,
    Numbers,
    Quantity,
    RecordedRuns,
    Trace,
    Verdict,
    Where,
    averaged,
    difference,
    gain,
    mean,
    ratio,
    traced,
)

RESETS = tuple(range(20, 400, 20))
"""Epochs at whose start the published settings intervene."""
LOSS, RATIOS = "reconstruction_loss", "distance_ratio_histogram"
CLOSE = 18
"""First of the 20 bins that hold distance ratios from 0.9 to 1."""


def last(name: str) -> Callable[[Trace], float]:
    return lambda trace: trace[name][max(trace[name])]


def at(name: str, epoch: int) -> Callable[[Trace], float]:
    """Value at the end of this epoch."""
    return lambda trace: trace[name].get(epoch, math.nan)


def at_resets(name: str) -> Callable[[Trace], float]:
    """Mean over the ends of epochs that begin with an intervention."""
    return lambda trace: mean(trace[name][epoch] for epoch in RESETS if epoch in trace[name])


def curve(where: Where, variant: str, name: str, summary: Callable[[Trace], float]) -> Quantity:
    return traced(CURVES, where, variant, (name,), summary)


def curve_gain(where: Where, name: str, summary: Callable[[Trace], float], *, variant: str = "brb",
               baseline: str = "none") -> Quantity:
    return difference(curve(where, variant, name, summary), curve(where, baseline, name, summary))


def algorithms_mean(study: str, dataset: str, variant: str, baseline: str, *,
                    algorithms: Sequence[str] = DEEP, measure: str = "acc") -> Quantity:
    return averaged([gain(study, Where(dataset, algorithm), variant, baseline, measure)
                     for algorithm in algorithms])


def jump(trace: Trace) -> float:
    """Mean rise of the reconstruction loss at a reset, in percent."""
    loss, after = trace[LOSS], trace[LOSS + AFTER_RESET]
    return mean(100 * (after[epoch] / loss[epoch - 1] - 1) for epoch in after if epoch - 1 in loss)


def left_of_jump(trace: Trace) -> float:
    """Mean percentage of that rise that is left at the next reset."""
    loss, after = trace[LOSS], trace[LOSS + AFTER_RESET]
    pairs = [(one, other) for one, other in zip(sorted(after), sorted(after)[1:], strict=False)
             if one - 1 in loss and other - 1 in loss]
    return mean(100 * (loss[other - 1] - loss[one - 1]) / (after[one] - loss[one - 1])
                for one, other in pairs)


def later_mean(name: str) -> Callable[[Trace], float]:
    """Mean over all epochs from the first reset on, interpolated between those recorded."""

    def found(trace: Trace) -> float:
        epochs = sorted(trace[name])
        values = [trace[name][epoch] for epoch in epochs]
        return float(np.interp(range(RESETS[0], epochs[-1] + 1), epochs, values).mean())

    return found


def close_share_gain(where: Where) -> Quantity:
    """Change at the first reset of the percentage of samples with a ratio from 0.9 to 1."""

    def found(runs: RecordedRuns) -> Numbers:
        made = {}
        names = (RATIOS, RATIOS + AFTER_RESET)
        for seed, columns in runs.histories(CURVES[:1], where, "brb", names).items():
            before, after = (columns[name] for name in names)
            first = after.epochs.min()
            shares = [own.values[own.epochs == epoch][0]
                      for own, epoch in ((after, first), (before, first - 1))]
            high, low = (100 * counts[CLOSE:].sum() / counts.sum() for counts in shares)
            made[seed] = float(high - low)
        return made

    return found


def relative_gain(where: Where) -> Quantity:
    """Gain of BRB in percent of the baseline's mean."""

    def found(runs: RecordedRuns) -> Numbers:
        base = mean(runs.scores(MAIN, where, "none").values())
        gains = gain(MAIN, where, "brb")(runs)
        return {seed: 100 * value / base for seed, value in gains.items()}

    return found


def cells_improved(runs: RecordedRuns) -> CheckResult:
    found = [one for one in improvements(runs.reader) if one.ours.dataset in SETS]
    return share("cells of five data sets where BRB has the higher mean accuracy", found, 30, 2)


def contrastive_improved(runs: RecordedRuns) -> CheckResult:
    return share("cells of both CIFAR sets after self-labeling",
                 improvements(runs.reader, "self-labeling"), 6)


def share(what: str, found: Sequence[Improvement], planned: int, slack: int = 0) -> CheckResult:
    """Compare the number of improved cells with the paper's."""
    better, paper = sum(one.difference > 0 for one, _ in found), sum(own > 0 for _, own in found)
    expected = "at least the paper's count" + (f" minus {slack}" if slack else "")
    if not found:
        return CheckResult(what, expected, "not run", "not run")
    missing = planned - len(found)
    ours = f"{better} of {len(found)}, the paper has {paper} of {len(found)}"
    ours += f"; {missing} of {planned} cells are missing" if missing else ""
    # Missing cells may add to either count.
    verdict: Verdict = ("holds" if better >= paper + missing - slack else
                        "does not hold" if better + missing < paper - slack else "open")
    return CheckResult(what, expected, ours, verdict)


def deviation(variant: str) -> Quantity:
    """Distance of a seed's ARI from the median of its cell, averaged over algorithms."""

    def of(algorithm: str) -> Quantity:
        def found(runs: RecordedRuns) -> Numbers:
            own = runs.scores("reclustering-methods", Where("usps", algorithm), variant, "ari")
            middle = median(own.values())
            return {seed: abs(number - middle) for seed, number in own.items()}
        return found

    return averaged([of(algorithm) for algorithm in DEEP])


def slower(runs: RecordedRuns) -> CheckResult:
    what, expected = "time of one reclustering on USPS, mixture / k-means", "above 2"
    study, seconds = "reclustering-methods", {"em": [], "k-means": []}  # type: str, dict[str, list]
    for one in cell_times(runs.reader, study) if study in runs.studies else ():
        if one.dataset == "usps" and one.variant in seconds:
            seconds[one.variant].append(one.parts["clustering"])
    if not all(seconds.values()):
        return CheckResult(what, expected, "not run", "not run")
    times = mean(seconds["em"]) / mean(seconds["k-means"])
    return CheckResult(what, expected, f"{times:.1f}", "holds" if times > 2 else "does not hold")


def overhead(variant: str, bound: float) -> Callable[[RecordedRuns], CheckResult]:
    def check(runs: RecordedRuns) -> CheckResult:
        what = f"time that BRB with {variant} adds to IDEC on MNIST, in percent"
        found = cell_times(runs.reader, "runtime") if "runtime" in runs.studies else []
        ours = [one.overhead for one in found if (one.dataset, one.variant) == ("mnist", variant)]
        if not ours:
            return CheckResult(what, f"at most {bound:g}", "not run", "not run")
        return CheckResult(what, f"at most {bound:g}", f"{ours[0]:.2f}",
                           "holds" if ours[0] <= bound else "does not hold")

    return check


def relative_to_brb(where: Where, name: str, summary: Callable[[Trace], float]) -> Quantity:
    """Summary of a curve with perturbation alone, divided by BRB's."""
    alone, brb = (traced(("soft-reset-components",), where, variant, (name,), summary)
                  for variant in ("perturb", "brb"))
    return ratio(alone, brb)
