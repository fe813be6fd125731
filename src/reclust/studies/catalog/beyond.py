"""Studies beyond the paper: the best of many replicas."""

from dataclasses import replace
from typing import Any

from ...data.augmentation.affine import Affine
from ...estimators.presets import BEST_INTERVENTION, CPU_MOTION, MOTION, PAPER_INTERVENTIONS
from ...interventions import Exchange, GaussianMixture, Intervention, KaimingNoise, Recluster
from ...interventions.adaptive import WhenSettled
from ...interventions.soft_reset import SoftReset
from ...interventions.split_merge import SplitMerge
from ...objectives import IDECObjective
from ...representations import ConvAutoencoder
from ..measures import LABEL_FREE
from ..protocols import AutoencoderProtocol
from ..study import Variant
from .registry import MOMENTUM, RECLUSTER, RESET, add, every

REPLICAS = 20  # of one repetition of `presets.best`, of which one is kept; they are a group
EXCHANGE, SPLIT_MERGE = Exchange(), SplitMerge(rows="first")
OFTEN = replace(BEST_INTERVENTION, interval=10)
SETTLED = WhenSettled(BEST_INTERVENTION.steps, decide="together")
GENTLE = SoftReset(0.9, KaimingNoise())
AFTER_RESET = (RECLUSTER, SPLIT_MERGE, MOMENTUM)
COMMON: dict[str, Any] = {
    "algorithms": ("idec",), "seeds": tuple(range(5 * REPLICAS)), "largest_group": REPLICAS,
    "evaluate_every": 20, "scores": tuple(LABEL_FREE)}


def _variant(name: str, intervention: Intervention | None = BEST_INTERVENTION,
             **changes: Any) -> Variant:
    pretraining = {"views": ("augmented",), **changes.pop("pretraining", {})}
    return Variant(name, intervention, {**changes, "pretraining": pretraining})


USUAL = (_variant("independent", PAPER_INTERVENTIONS["brb"]),
         _variant("exchange", every(EXCHANGE, RESET, RECLUSTER, MOMENTUM)),
         _variant("split and merge"))
MOVING = _variant("more motion", augment=MOTION)
BRIEFLY = _variant("more motion", OFTEN, pretraining={"epochs": 60}, clustering={"epochs": 100},
                   augment=MOTION)
LARGE_BATCHES = _variant("large batches", pretraining={"batch_size": 256},
                         clustering={"batch_size": 256})

add("best",
    'Beyond the paper: preset="best", five times twenty replicas that split and merge, exchange, '
    "or do neither; 'more motion' moves images further, and color images without changing their "
    "colors.",
    (*USUAL, MOVING), datasets=("optdigits", "usps", "gtsrb", "kmnist_test"), **COMMON)
add("best-variations", "What might lift the best preset further, one repetition each.", (
    _variant("as it is"),
    _variant("more motion", augment=MOTION),
    _variant("still more motion", augment=CPU_MOTION),
    _variant("longer", pretraining={"epochs": 500}, clustering={"epochs": 800}),
    _variant("more often", OFTEN),
    _variant("gentler", every(EXCHANGE, GENTLE, *AFTER_RESET)),
    _variant("gentler and more often", every(EXCHANGE, GENTLE, *AFTER_RESET, interval=10)),
    _variant("two resets at once", every(EXCHANGE, RESET, RESET, *AFTER_RESET)),
    _variant("half are replaced", every(Exchange(share=0.5), RESET, *AFTER_RESET)),
    _variant("mixture", every(EXCHANGE, RESET, Recluster(GaussianMixture(), rows="first"),
                              SPLIT_MERGE, MOMENTUM)),
    _variant("embedding of 20", representation={"embedding": 20}),
    _variant("a third of the weight", objective=IDECObjective(0.03)),
    _variant("three times the weight", objective=IDECObjective(0.3)),
    _variant("convolutional", representation=ConvAutoencoder()),
    _variant("convolutional and residual, briefly", OFTEN, pretraining={"epochs": 60},
             representation=ConvAutoencoder((16, 32, 64), residuals=1), clustering={"epochs": 100}),
    _variant("adaptive interval", SETTLED),
    _variant("adaptive interval and reset", replace(SETTLED, keep="scaled")),
    _variant("split and merge now and then", every(
        EXCHANGE, RESET, RECLUSTER, replace(SPLIT_MERGE, probability=0.5), MOMENTUM)),
), datasets=("optdigits", "usps", "kmnist_test"), **{**COMMON, "seeds": tuple(range(REPLICAS))})
add("best-of-many-samples",
    "The same for large sets, over fewer epochs; with more motion still fewer, and more resets.",
    (*USUAL, BRIEFLY), datasets=("mnist", "fmnist"), **COMMON,
    protocol=AutoencoderProtocol(pretraining_epochs=100, epochs=120))
add("best-of-few-samples", "The same for a small set, in batches of 64, and in large ones of 256.",
    (*USUAL, MOVING, LARGE_BATCHES), datasets=("digits",), **COMMON,
    protocol=AutoencoderProtocol(batch_size=64))
add("best-of-small-images",
    "The same for a small set of images that are enlarged as estimators do it.", (*USUAL, MOVING),
    datasets=("digits",), **COMMON, protocol=AutoencoderProtocol(batch_size=64, least_side=28))
add("best-of-colours",
    'The same for color images through Lens(light="removed"); \'only moved\' leaves colors '
    "as they are.",
    (*USUAL, MOVING, _variant("only moved", augment=Affine())), datasets=("gtsrb",), **COMMON,
    protocol=AutoencoderProtocol(light="removed"))
