"""What goes beyond the paper: the best of many replicas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...data.augmentation.affine import Affine
from ...estimators.presets import BEST_INTERVENTION, CPU_MOTION, MOTION, PAPER_INTERVENTIONS
from ...interventions import (
    Exchange,
    GaussianMixture,
    Intervention,
    KaimingNoise,
    Recluster,
    SoftReset,
    SplitMerge,
    WhenSettled,
)
from ...objectives import IDECObjective
from ...representations import ConvAutoencoder
from ..measures import LABEL_FREE
from ..protocols import AutoencoderProtocol
from ..study import Study, Variant
from .registry import study
from .steps import MOMENTUM, RECLUSTER, RESET, every

REPLICAS = 20
"""Of one repetition of `presets.best`, a group of its own: the runs among which one is kept."""

AUGMENTED: dict[str, Any] = {"pretraining": {"views": ("augmented",)}}
EXCHANGE, SPLIT_MERGE = Exchange(), SplitMerge(rows="first")


@study
def best() -> Study:
    return Study("best", (
        Variant("independent", PAPER_INTERVENTIONS["brb"], changes=AUGMENTED),
        Variant("exchange", every(EXCHANGE, RESET, RECLUSTER, MOMENTUM), changes=AUGMENTED),
        Variant("split and merge", BEST_INTERVENTION, changes=AUGMENTED),
        Variant("more motion", BEST_INTERVENTION, changes={**AUGMENTED, "augment": MOTION}),
    ), algorithms=("idec",), datasets=("optdigits", "usps", "gtsrb", "kmnist_test"), seeds=tuple(range(5 * REPLICAS)),
        largest_group=REPLICAS, evaluate_every=20, scores=tuple(LABEL_FREE),
        about='Beyond the paper: preset="best", five times twenty replicas that split and merge, exchange, or do neither; '
              'more motion is for images that move further in training, of colour images in place of changes of colour.')


@study
def best_variations() -> Study:
    """One repetition each: a first look at what might lift `presets.best` further."""
    def changed(name: str, *, intervention: Intervention = BEST_INTERVENTION, **changes: Any) -> Variant:
        pretraining = {**AUGMENTED["pretraining"], **changes.pop("pretraining", {})}
        return Variant(name, intervention, changes={**changes, "pretraining": pretraining})

    others = (RECLUSTER, SPLIT_MERGE, MOMENTUM)
    gentle = SoftReset(0.9, KaimingNoise())
    settled = WhenSettled(BEST_INTERVENTION.steps, decide="together")
    return replace(best(), name="best-variations", datasets=("optdigits", "usps", "kmnist_test"),
                   seeds=tuple(range(REPLICAS)), variants=(
        changed("as it is"),
        changed("more motion", augment=MOTION),
        changed("still more motion", augment=CPU_MOTION),
        changed("longer", pretraining={"epochs": 500}, clustering={"epochs": 800}),
        changed("more often", intervention=replace(BEST_INTERVENTION, interval=10)),
        changed("gentler", intervention=every(EXCHANGE, gentle, *others)),
        changed("gentler and more often", intervention=every(EXCHANGE, gentle, *others, interval=10)),
        changed("two resets at once", intervention=every(EXCHANGE, RESET, RESET, *others)),
        changed("half are replaced", intervention=every(Exchange(share=0.5), RESET, *others)),
        changed("mixture", intervention=every(
            EXCHANGE, RESET, Recluster(GaussianMixture(), rows="first"), SPLIT_MERGE, MOMENTUM)),
        changed("embedding of 20", representation={"embedding": 20}),
        changed("a third of the weight", objective=IDECObjective(0.03)),
        changed("three times the weight", objective=IDECObjective(0.3)),
        changed("convolutional", representation=ConvAutoencoder()),
        changed("convolutional and residual, briefly", representation=ConvAutoencoder((16, 32, 64), residuals=1),
                intervention=replace(BEST_INTERVENTION, interval=10), pretraining={"epochs": 60}, clustering={"epochs": 100}),
        changed("adaptive interval", intervention=settled),
        changed("adaptive interval and reset", intervention=replace(settled, keep="scaled")),
        changed("split and merge now and then", intervention=every(
            EXCHANGE, RESET, RECLUSTER, replace(SPLIT_MERGE, probability=0.5), MOMENTUM)),
    ), about="What might lift the best preset further, one repetition each.")


@study
def best_of_many_samples() -> Study:
    *usual, _ = best().variants
    briefly = {"pretraining": {**AUGMENTED["pretraining"], "epochs": 60}, "clustering": {"epochs": 100}, "augment": MOTION}
    return replace(best(), name="best-of-many-samples", datasets=("mnist", "fmnist"),
                   variants=(*usual, Variant("more motion", replace(BEST_INTERVENTION, interval=10), changes=briefly)),
                   protocol=AutoencoderProtocol(pretraining_epochs=100, epochs=120),
                   about="The same for large sets, over fewer epochs; with more motion still fewer, and more resets.")


@study
def best_of_few_samples() -> Study:
    as_published = {"pretraining": {**AUGMENTED["pretraining"], "batch_size": 256}, "clustering": {"batch_size": 256}}
    return replace(best(), name="best-of-few-samples", datasets=("digits",), protocol=AutoencoderProtocol(batch_size=64),
                   variants=(*best().variants, Variant("large batches", BEST_INTERVENTION, changes=as_published)),
                   about="The same for a small set, in batches of 64, and in large ones of 256.")


@study
def best_of_small_images() -> Study:
    return replace(best(), name="best-of-small-images", datasets=("digits",),
                   protocol=AutoencoderProtocol(batch_size=64, least_side=28),
                   about="The same for a small set of images that are enlarged as estimators do it.")


@study
def best_of_colours() -> Study:
    only_moved = Variant("only moved", BEST_INTERVENTION, changes={**AUGMENTED, "augment": Affine()})
    return replace(best(), name="best-of-colours", datasets=("gtsrb",), protocol=AutoencoderProtocol(light="removed"),
                   variants=(*best().variants, only_moved),
                   about='The same for colour images through Lens(light="removed"); only moved: with colours as they are.')
