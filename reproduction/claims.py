"""The paper's claims and the checks that decide them, written before there were records.

Every check is a number by seed, judged by the 95 % interval of its mean. Curves come from
`training-curves`, or from `acc-table` if that has more seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reclust.studies.figures.runs import CURVES
from reclust.training.history import AFTER_RESET

from .evidence import (
    CheckResult,
    RecordedRuns,
    SeedCheck,
    Verdict,
    Where,
    above,
    all_of,
    any_of,
    averaged,
    below,
    difference,
    four_digits,
    gain,
    plain,
    reaching,
    score,
    traced,
    within,
)
from .quantities import (
    LOSS,
    algorithms_mean,
    at,
    at_resets,
    cells_improved,
    close_share_gain,
    contrastive_improved,
    curve,
    curve_gain,
    deviation,
    jump,
    last,
    later_mean,
    left_of_jump,
    overhead,
    relative_gain,
    relative_to_brb,
    slower,
)

ANALYSED = tuple(Where(dataset, "dcn") for dataset in ("gtsrb", "optdigits", "mnist"))
GTSRB, CONTROLLED = ANALYSED[:2]
COMPONENTS = (Where("usps", "dcn"), Where("optdigits", "dcn"))
INTRA, INTER = "intra_class_distance", "inter_class_distance"


@dataclass(frozen=True)
class Claim:
    """A claim: the key of its remark, its text, its checks, and the paper's numbers."""

    name: str
    text: str
    checks: Sequence[Callable[[RecordedRuns], CheckResult]]
    paper: str = ""
    rule: str = ""
    combine: Callable[[Sequence[CheckResult]], Verdict] = all_of

    def judge(self, runs: RecordedRuns) -> tuple[Verdict, list[CheckResult]]:
        results = [check(runs) for check in self.checks]
        return self.combine(results), results


def _label_changes(variant: str, baseline: str) -> list[SeedCheck]:
    names = {"brb": "BRB", "none": "none", "recluster": "reclustering alone"}
    expected = above() if variant == "brb" else within(1.0)
    return [SeedCheck(
        f"label change in epochs with a reset, {names[variant]} minus {names[baseline]}, {where}",
        curve_gain(where, "label_change", at_resets("label_change"), variant=variant,
                   baseline=baseline), expected) for where in ANALYSED]


def _change(end: Callable, start: Callable) -> Callable:
    return lambda trace: end(trace) - start(trace)


CLAIMS: tuple[Claim, ...] = (
    Claim("most-cells", "BRB improves most cells of the main table.", [cells_improved],
          paper="32 of 36 cells", rule="Without KMNIST, of which only the test images are used "
          "here. Two cells of slack, since noise decides ties."),
    Claim("contrastive-cells", "BRB improves most contrastive cells, too.", [contrastive_improved],
          paper="5 of 6 cells"),
    Claim("neither-alone", "Resets alone or reclustering alone are not enough: they make DCN worse "
          "on GTSRB and on USPS.", [
              SeedCheck("DCN+Reset minus DCN on GTSRB, pretrained",
                        gain("acc-table", GTSRB, "reset"), below()),
              SeedCheck("DCN+Recluster minus DCN on USPS, pretrained",
                        gain("acc-table", Where("usps", "dcn"), "recluster"), below())],
          paper="−6.2 and −1.2 points of ACC"),
    Claim("from-scratch", "From scratch, BRB gains up to 30 % of the baseline's accuracy.", [
        SeedCheck(f"relative gain of {where}, %", relative_gain(where), reaching(30.0))
        for where in (Where("optdigits", "dec", False), Where("gtsrb", "dec", False),
                      Where("usps", "idec", False))],
        paper="31, 23 and 27 %", rule="One of the three cells that the paper names is enough.",
        combine=any_of),
    Claim("without-augmentation", "BRB helps from scratch without augmentation, too.", [
        SeedCheck("DEC+BRB minus DEC on OPTDIGITS", gain(
            "without-augmentation-program", Where("optdigits", "dec", False), "brb"), above())],
        paper="61 to 77"),
    Claim("label-change", "Labels change at each reset, but hardly with reclustering alone.", [
        *_label_changes("brb", "none"), *_label_changes("brb", "recluster"),
        *_label_changes("recluster", "none")]),
    Claim("intra-class-distance", "Early resets keep classes from being compressed.", [
        *[SeedCheck(f"intra-class distance after 60 epochs, BRB minus none, {where}",
                    curve_gain(where, INTRA, at(INTRA, 59)), above(), four_digits)
          for where in ANALYSED],
        *[SeedCheck(f"its rise over the epoch of the first reset, {where}", curve(
            where, "brb", INTRA, _change(at(INTRA, 20), at(INTRA, 19))), above(),
            four_digits) for where in ANALYSED]]),
    Claim("intra-class-mnist", "On MNIST the intra-class distance falls again after epoch 60.", [
        SeedCheck("intra-class distance, end minus after 60 epochs, DCN+BRB+Pretrain on MNIST",
                  curve(Where("mnist", "dcn"), "brb", INTRA, _change(last(INTRA), at(INTRA, 59))),
                  below(), four_digits)]),
    Claim("inter-class-distance", "Classes are further apart with BRB.", [
        SeedCheck(f"inter-class distance at the end, BRB minus none, {where}",
                  curve_gain(where, INTER, last(INTER)), above(), four_digits)
        for where in ANALYSED[:2]],
        rule="Without MNIST, where the paper sees no difference at the end."),
    Claim("distance-ratios", "After a reset, more samples are about halfway between two centers.", [
        SeedCheck("samples with a distance ratio of 0.9 to 1, after the first reset minus before, "
                  f"in points, {where}", close_share_gain(where), above()) for where in ANALYSED]),
    Claim("silhouette", "The silhouette of predicted labels is misleading on GTSRB: it prefers the "
          "worse clustering.", [
              SeedCheck("ACC, BRB minus none", gain("acc-table", GTSRB, "brb"), above()),
              SeedCheck("silhouette of true labels, BRB minus none",
                        curve_gain(GTSRB, "silhouette", last("silhouette")), above(), four_digits),
              SeedCheck("silhouette of predicted labels, BRB minus none", curve_gain(
                  GTSRB, "silhouette_predicted", last("silhouette_predicted")), below(),
                  four_digits)]),
    Claim("reconstruction", "The reconstruction loss jumps at a reset and recovers (pretrained DCN "
          "on OPTDIGITS).", [
              SeedCheck("rise at a reset, %", traced(
                  CURVES, CONTROLLED, "brb", (LOSS, LOSS + AFTER_RESET), jump), above()),
              SeedCheck("rise that is left at the next reset, %", traced(
                  CURVES, CONTROLLED, "brb", (LOSS, LOSS + AFTER_RESET), left_of_jump),
                  below(10.0))]),
    Claim("controls", "New targets without a reset do not help: noise and disentangled stay below "
          "BRB (pretrained DCN on OPTDIGITS).", [
              SeedCheck(f"ACC of {name}", score("noise-and-disentangled", CONTROLLED, variant),
                        expected, plain)
              for name, variant, expected in (("noise", "noise", below(80.0)), (
                  "disentangled", "disentangled", below(80.0)), ("BRB", "brb", above(85.0)))],
          paper="below 80, below 80, above 85"),
    Claim("contraction", "Without contraction results get worse: gradients grow, embeddings and "
          "centers collapse.", [
              *[SeedCheck(f"ACC, perturbation alone minus BRB, {where}", gain(
                  "soft-reset-components", where, "perturb", "brb"), below())
                for where in COMPONENTS],
              *[SeedCheck("gradient norm from the first reset on, perturbation alone / BRB, "
                          f"{where}",
                          relative_to_brb(where, "gradient_norm", later_mean("gradient_norm")),
                          above(1.0), plain) for where in COMPONENTS],
              *[SeedCheck(f"length of {what} at the end, perturbation alone / BRB, {where}",
                          relative_to_brb(where, name, last(name)), below(0.5), plain)
                for what, name in (("embeddings", "embedding_norm"), ("centers", "center_norm"))
                for where in COMPONENTS]]),
    Claim("gaussian", "Gaussian noise instead of fresh weights is close to BRB on OPTDIGITS and "
          "worse on USPS.", [
              SeedCheck(f"ACC, Gaussian noise minus BRB, {where}", gain(
                  "soft-reset-components", where, "gaussian", "brb"), expected)
              for where, expected in ((COMPONENTS[1], within(3.0)), (COMPONENTS[0], below()))]),
    Claim("embedding-reset", "Also resetting the embedding layer costs accuracy on GTSRB and "
          "OPTDIGITS.", [
              SeedCheck("ACC, with embedding reset minus BRB, mean of three pretrained algorithms "
                        f"on {dataset.upper()}", algorithms_mean(
                            "embedding-reset", dataset, "embedding reset", "brb"), below())
              for dataset in ("gtsrb", "optdigits")]),
    Claim("momentum-reset", "Without the momentum reset, IDEC on GTSRB and DEC on OPTDIGITS get "
          "worse.", [
              SeedCheck(f"ACC, without momentum reset minus BRB, {where}", gain(
                  "momentum-reset", where, "no momentum reset", "brb"), below())
              for where in (Where("gtsrb", "idec"), Where("optdigits", "dec"))]),
    Claim("native", "Reclustering with k-means is at least as good as with the algorithm's own "
          "assignment.", [
              SeedCheck("ACC, k-means minus own assignment, mean of DEC and IDEC on "
                        f"{dataset.upper()}, {'pretrained' if pretrained else 'from scratch'}",
                        averaged([gain("native-reclustering", Where(dataset, algorithm, pretrained),
                                       "brb", "native") for algorithm in ("dec", "idec")]),
                        above(-2.0))
              for dataset in ("optdigits", "gtsrb", "usps") for pretrained in (False, True)],
          rule="Two points of slack, and the mean of two algorithms."),
    Claim("blocks", "Resetting block 4 of a ResNet is best, resetting all blocks ruins it.", [
        *[SeedCheck(f"ACC, block 4 minus {others}, IDEC on CIFAR10", gain(
            "resnet-blocks", Where("cifar10", "idec"), "blocks 4, mlp yes",
            f"blocks {others}, mlp yes"), above()) for others in ("none", "1", "1+2", "4+3")],
        SeedCheck("ACC, all blocks minus none, IDEC on CIFAR10", gain(
            "resnet-blocks", Where("cifar10", "idec"), "blocks 4+3+2+1, mlp yes",
            "blocks none, mlp yes"), below())],
        paper="84.6 against 82.4, 82.4, 82.2 and 81.3; 68.8"),
    Claim("mixture", "Reclustering with a Gaussian mixture is best, but slow and unstable.", [
        *[SeedCheck(f"ARI on USPS, mixture minus {other}, mean of three algorithms",
                    algorithms_mean("reclustering-methods", "usps", "em", other, measure="ari"),
                    above())
          for other in ("k-means", "k-means++", "k-medoids")],
        slower,
        SeedCheck("ARI on USPS, distance of a seed from the median, mixture minus k-means",
                  difference(deviation("em"), deviation("k-means")), above())],
        paper="79.5 against 77.0, 74.9 and 75.4"),
    Claim("subsample", "Reclustering on a subset of the samples costs next to nothing.", [
        SeedCheck(f"ARI on MNIST, {rows} samples minus all 70000, mean of three algorithms",
                  algorithms_mean("subsample-size", "mnist", f"{rows} rows", "70000 rows",
                                  measure="ari"), within(2.0)) for rows in (7000, 17500, 35000)]),
    Claim("overhead", "BRB costs little time.", [overhead("7000 rows", 2.0),
                                                 overhead("70000 rows", 6.0)],
          paper="1.1 and 5.4 %", rule="The bounds are the paper's numbers, rounded up. One run "
          "each, so there is no interval."),
)
