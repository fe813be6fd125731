"""A study expands into the same runs everywhere, and knows its small form."""

import dataclasses
import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

from reclust import BRB, Every, SimCLR, SoftReset
from reclust.objectives import DCNObjective
from reclust.studies import (
    AutoencoderProtocol,
    ContrastiveProtocol,
    Study,
    Variant,
    named,
    names,
    published,
)
from reclust.training.settings import settings_per_replica
from reclust.utils.values import change, to_json
from studies.tiny import tiny_study

EVERY_STUDY = [form for name in names() for form in (name, f"{name}-mini")]
RUNS = {row["name"] + ending: int(row[column]) for row in published.catalog() for ending, column in (("", "runs"), ("-mini", "mini"))}


@pytest.mark.parametrize("name", EVERY_STUDY)
def test_named_studies_expand_into_groups_that_can_train_together(name):
    study = named(name)
    assert study.name == name and study.about
    groups = study.groups()
    runs = [run for group in groups for run in group.runs]
    assert len({run.key for run in runs}) == len(runs) == RUNS[name]
    assert len({(run.dataset, run.algorithm, run.pretrained, run.variant, run.seed) for run in runs}) == len(runs)
    stacked = {(id(group.protocol), group.dataset, group.runs[0].algorithm, group.runs[0].pretrained, group.runs[0].variant): group for group in groups}
    for group in stacked.values():  # one of those that differ only in seeds
        settings_per_replica(group.settings, group.seeds)  # raises if replicas cannot be stacked
    for group in groups:
        assert len(group.runs) <= study.largest_group
        assert group.pretraining is None or set(group.seeds) <= set(group.pretraining.seeds)
    for variant in study.variants:
        if "interval" in variant.factors:
            interval = variant.intervention.interval
            assert variant.factors["interval"] == interval and f"T={interval} " in variant.name


def test_sizes_are_those_of_the_paper():
    assert RUNS["acc-table"] == 24 * 6 * 10 and RUNS["sensitivity"] == 4 * 4 * 4 * 3 * 5 * 3


def test_studies_of_the_same_runs_share_them():
    assert {run.key for run in named("from-scratch").planned()} < {run.key for run in named("acc-table").planned()}


DECISIVE = {  # field -> another value of it, which must change the keys
    "variants": (Variant("none"), Variant("brb", Every(3, (SoftReset(0.8),)))), "seeds": (3, 5), "pretraining_seeds": (3, 4, 5),
    "protocol": AutoencoderProtocol(), "precision": "float64", "measures": ("norms",), "evaluate_every": 3, "scores": ("silhouette",),
}
PROTOCOLS = (
    (AutoencoderProtocol(n_clusters=3), {
        "pretraining_epochs": 5, "epochs": 5, "batch_size": 7, "hidden": (5,), "side": 5, "rows": 99, "n_clusters": 4, "classes": (1, 2),
        "light": "removed", "least_side": 20, "reading": "program", "images": "native"}),
    (ContrastiveProtocol(n_clusters=3), {
        "pretraining_epochs": 5, "epochs": 5, "batch_size": 7, "labeling_epochs": 5, "representation": SimCLR(), "side": 5, "rows": 99,
        "n_clusters": 4, "reading": "program"}),
)


def keys(study):
    return {run.key for run in study.planned()}


def test_every_choice_that_changes_a_result_changes_the_keys():
    base = tiny_study(pretrained=(True,))
    combined, irrelevant = {"datasets", "algorithms", "pretrained"}, {"name", "about", "small_variants"}
    assert {field.name for field in dataclasses.fields(Study)} == {*DECISIVE, "largest_group"} | combined | irrelevant, "classify a new field"
    for name, other in DECISIVE.items():
        assert not keys(base) & keys(dataclasses.replace(base, **{name: other})), name
    assert not keys(base) & keys(dataclasses.replace(base, seeds=(4, 3))), "the order of seeds, too"
    assert keys(tiny_study(name="other", about="other", small_variants=("none",))) == keys(tiny_study()), "names change nothing"
    assert keys(tiny_study(algorithms=("dec",))) < keys(tiny_study()), "other groups stay as they are"
    same = keys(base) & keys(dataclasses.replace(base, largest_group=2))
    assert same == {run.key for run in base.planned() if run.variant == "slow"}, "groups of at most two runs"


@pytest.mark.parametrize(("protocol", "changes"), PROTOCOLS, ids=("autoencoder", "contrastive"))
def test_every_choice_of_a_protocol_changes_the_keys(protocol, changes):
    def of(chosen):
        return keys(tiny_study(protocol=chosen, datasets=("mine",), pretrained=(True,), variants=(Variant("none"),)))

    assert {field.name for field in dataclasses.fields(protocol)} == set(changes), "classify a new field"
    for name, other in changes.items():
        assert not of(protocol) & of(dataclasses.replace(protocol, **{name: other})), name


def test_defaults_are_those_that_finished_runs_were_made_with():
    """Keys leave out defaults, so that a new field keeps finished runs."""
    settings = [group.settings[0] for name in ("acc-table", "self-labeling")
                for group in dataclasses.replace(named(name), seeds=(1,), pretraining_seeds=()).groups()]
    seen = hashlib.sha256(json.dumps(to_json(settings), sort_keys=True).encode()).hexdigest()[:16]
    assert seen == "bfdb49dd6b93e33c", (
        "Settings of studies look different. If a field was added, write the new hash here. If a default or the meaning of "
        "a value has changed, finished runs are no longer what they say: increase REVISION in groups.py as well.")


@pytest.mark.slow
def test_keys_are_the_same_in_every_process():
    program = "from studies.tiny import tiny_study; print(*[run.key for run in tiny_study().planned()])"
    printed = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
                             capture_output=True, text=True, check=True).stdout
    assert printed.split() == [run.key for run in tiny_study().planned()]


def test_changes_reach_into_values():
    settings = tiny_study().groups()[0].settings[0]
    assert change(settings, {"clustering": {"lr": 0.5}, "augment": None}) == dataclasses.replace(
        settings, augment=None, clustering=dataclasses.replace(settings.clustering, lr=0.5))


def test_one_algorithm_is_enough_for_a_custom_objective():
    own = Variant("mine", changes={"objective": DCNObjective()})
    assert len(tiny_study(algorithms=("dec",), variants=(Variant("none"), own)).planned()) == 8
    with pytest.raises(ValueError, match="same run, .*digits, dec, pretrained, 'mine', seed 3 and digits, dcn, pretrained"):
        tiny_study(variants=(own,)).groups()


def test_changes_of_the_pretraining_apply_only_if_there_is_one():
    study = tiny_study(algorithms=("dec",), variants=(Variant("none"), Variant("longer", changes={"pretraining": {"epochs": 5}})))
    seen = {(run.pretrained, run.variant): settings.pretraining and settings.pretraining.epochs
            for group in study.groups() for run, settings in zip(group.runs, group.settings, strict=True)}
    assert seen == {(True, "none"): 2, (True, "longer"): 5, (False, "none"): None, (False, "longer"): None}


@pytest.mark.parametrize(("given", "message"), [
    ({"datasets": "digits"}, "datasets must be a list, got 'digits'"), ({"pretrained": ("no",)}, "no 'no' among pretrained: choose from True"),
    ({"variants": Variant("none")}, "variants must be a list"), ({"protocol": AutoencoderProtocol}, "protocol must be an instance of StudyProtocol"),
    ({"precision": "fp16"}, "precision must be one of 'auto', .*got 'fp16'"), ({"scores": ("accuracy",)}, "no 'accuracy' among scores"),
    ({"datasets": ("digits", "digits")}, "datasets must be one or more, all different, got digits, digits"),
    ({"variants": (Variant("a"), Variant("a", Every(2, SoftReset(0.5))))}, "names of variants must be one or more, all different"),
])
def test_mistakes_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        tiny_study(**given)


def test_numpy_integers_are_seeds():
    assert json.dumps(tiny_study(seeds=np.arange(2)).seeds) == "[0, 1]"


def test_the_small_form_has_fewer_epochs_also_in_changes():
    small = {variant.name: variant.changes for variant in named("best-variations-mini").variants}
    assert small["longer"]["pretraining"]["epochs"] == 20 and small["longer"]["clustering"] == {"epochs": 40}
    assert small["convolutional and residual, briefly"]["clustering"] == {"epochs": 5}
    assert next(one for one in named("contrastive-mini").variants if one.name == "k-means").changes["clustering"] == {"epochs": 0}


def test_variants_and_algorithms_share_their_pretraining():
    shared = {group.pretraining.key for group in named("acc-table").groups() if group.pretraining is not None}
    assert len(shared) == 6, "one for each data set"
    assert {group.pretraining.key for group in named("embeddings").groups()} <= shared


@pytest.mark.parametrize(("seeds", "largest", "together"), [
    (6, 40, {(0, 1, 2, 3, 4, 5)}), (6, 10, {(0, 1, 2, 3, 4, 5)}), (6, 4, {(0, 1, 2, 3), (4, 5)})])
def test_groups_end_with_a_variant_so_that_they_share_their_pretraining(seeds, largest, together):
    variants = tuple(Variant(str(interval), BRB(interval)) for interval in range(2, 9))
    groups = tiny_study(algorithms=("dec",), pretrained=(True,), variants=variants, seeds=tuple(range(seeds)), largest_group=largest).groups()
    assert {group.pretraining.seeds for group in groups} == together
    assert len({group.pretraining.key for group in groups}) == len(together)
    assert sum(len(group.runs) for group in groups) == 7 * seeds and max(len(group.runs) for group in groups) <= largest


def test_contrastive_variants_are_pretrained_with_their_own_representation():
    changes = ({}, {"temperature": 0.1}, {"hidden": (8,)})
    variants = tuple(Variant(str(i), changes={"representation": one} if one else {}) for i, one in enumerate(changes))
    groups = tiny_study(protocol=ContrastiveProtocol(), datasets=("cifar10",), algorithms=("dec", "idec"), pretrained=(True,),
                        variants=variants).groups()
    assert len({group.pretraining.key for group in groups}) == 3, "whatever the algorithm"
    assert {group.pretraining.settings.representation.temperature for group in groups} == {0.5, 0.1}
