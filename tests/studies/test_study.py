"""Studies are values: they expand into the same groups everywhere, and files hold all of them."""

import dataclasses
import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

from reclust import BRB, Every, KMeans, SimCLR, SoftReset
from reclust.objectives import DCNObjective
from reclust.studies import (
    AutoencoderProtocol,
    ContrastiveProtocol,
    Study,
    Variant,
    named,
    names,
    read_study,
    write_study,
)
from reclust.studies.study import changed
from reclust.training.settings import one_each
from reclust.utils.values import from_json, to_json
from studies.tiny import tiny_study

EVERY_STUDY = [form for name in names() for form in (name, f"{name}-mini")]


@pytest.mark.parametrize("name", EVERY_STUDY)
def test_named_studies_expand_into_groups_that_can_train_together(name):
    study = named(name)
    assert study.name == name and study.about
    runs = study.planned()
    assert len({run.key for run in runs}) == len(runs), "every run has a key of its own"
    for group in study.groups():
        one_each(group.settings, group.seeds)  # raises where replicas cannot be stacked
        assert len(group.runs) <= study.largest_group
        if group.pretraining is not None:
            assert set(group.seeds) <= set(group.pretraining.seeds)
    cells = {(run.dataset, run.algorithm, run.pretrained, run.variant, run.seed) for run in runs}
    assert len(cells) == len(runs) == (len(study.datasets) * len(study.algorithms) * len(study.pretrained)
                                       * len(study.variants) * len(study.seeds))


@pytest.mark.parametrize("name", EVERY_STUDY)
def test_a_study_survives_files(name, tmp_path):
    study = named(name)
    (tmp_path / "study.toml").write_text(write_study(study))
    assert read_study(tmp_path / "study.toml") == study
    assert from_json(to_json(study)) == study


def test_sizes_are_those_of_the_paper():
    assert len(named("acc-table").planned()) == 24 * 6 * 10
    assert len(named("sensitivity").planned()) == 4 * 4 * 4 * 3 * 5 * 3


@pytest.mark.parametrize("name", EVERY_STUDY)
def test_factors_and_names_say_what_is_run(name):
    for variant in named(name).variants:
        if "interval" in variant.factors:
            assert variant.factors["interval"] == variant.intervention.interval and f"T={variant.intervention.interval} " in variant.name


def test_variants_share_their_pretraining_and_algorithms_too():
    shared = {group.pretraining.key for group in named("acc-table").groups() if group.pretraining is not None}
    assert len(shared) == 6, "one for each data set"
    assert {group.pretraining.key for group in named("sensitivity").groups()} <= shared


@pytest.mark.parametrize(("seeds", "largest", "together"), [
    (6, 40, {(0, 1, 2, 3, 4, 5)}), (6, 10, {(0, 1, 2, 3, 4, 5)}), (6, 4, {(0, 1, 2, 3), (4, 5)})])
def test_groups_end_with_a_variant_so_that_they_share_their_pretraining(seeds, largest, together):
    variants = tuple(Variant(str(interval), BRB(interval)) for interval in range(2, 9))
    groups = tiny_study(algorithms=("dec",), pretrained=(True,), variants=variants, seeds=tuple(range(seeds)), largest_group=largest).groups()
    assert {group.pretraining.seeds for group in groups} == together
    assert len({group.pretraining.key for group in groups}) == len(together)
    assert sum(len(group.runs) for group in groups) == 7 * seeds and max(len(group.runs) for group in groups) <= largest


def test_contrastive_variants_are_pretrained_as_they_are():
    changes = ({}, {"temperature": 0.1}, {"hidden": (8,)})
    variants = tuple(Variant(str(i), changes={"representation": one} if one else {}) for i, one in enumerate(changes))
    groups = tiny_study(protocol=ContrastiveProtocol(), datasets=("cifar10",), algorithms=("dec", "idec"), pretrained=(True,),
                        variants=variants).groups()
    assert len({group.pretraining.key for group in groups}) == 3, "whatever the algorithm"
    assert {group.pretraining.settings.representation.temperature for group in groups} == {0.5, 0.1}


def test_studies_of_the_same_runs_share_them():
    assert {run.key for run in named("from-scratch").planned()} < {run.key for run in named("acc-table").planned()}


DECISIVE = {  # field -> another value of it, which must make other runs
    "variants": (Variant("none"), Variant("brb", Every(3, (SoftReset(0.8),)))), "seeds": (3, 5), "pretraining_seeds": (3, 4, 5),
    "protocol": AutoencoderProtocol(), "precision": "float64", "measures": ("norms",), "evaluate_every": 3, "scores": ("silhouette",),
}
PROTOCOLS = (
    (AutoencoderProtocol(n_clusters=3), {
        "pretraining_epochs": 5, "epochs": 5, "batch_size": 7, "hidden": (5,), "side": 5, "rows": 99, "n_clusters": 4, "classes": (1, 2),
        "light": "removed", "least_side": 20}),
    (ContrastiveProtocol(n_clusters=3), {
        "pretraining_epochs": 5, "epochs": 5, "batch_size": 7, "labeling_epochs": 5, "representation": SimCLR(), "side": 5, "rows": 99,
        "n_clusters": 4}),
)


def keys(study):
    return {run.key for run in study.planned()}


def test_every_choice_that_changes_a_result_changes_the_keys():
    base = tiny_study(pretrained=(True,))
    which, nothing = {"datasets", "algorithms", "pretrained"}, {"name", "about", "small_variants"}
    assert {field.name for field in dataclasses.fields(Study)} == {*DECISIVE, "largest_group"} | which | nothing, "say what a new one does"
    for name, other in DECISIVE.items():
        assert not keys(base) & keys(dataclasses.replace(base, **{name: other})), name
    assert not keys(base) & keys(dataclasses.replace(base, seeds=(4, 3))), "their order, too"
    assert keys(tiny_study(name="other", about="other", small_variants=("none",))) == keys(tiny_study()), "names change nothing"
    assert keys(tiny_study(algorithms=("dec",))) < keys(tiny_study()), "other groups stay as they are"
    same = keys(base) & keys(dataclasses.replace(base, largest_group=2))
    assert same == {run.key for run in base.planned() if run.variant == "slow"}, "groups that had no more than two before"


@pytest.mark.parametrize(("protocol", "changes"), PROTOCOLS, ids=("autoencoder", "contrastive"))
def test_every_choice_of_a_protocol_changes_the_keys(protocol, changes):
    def of(chosen):
        return keys(tiny_study(protocol=chosen, datasets=("mine",), pretrained=(True,), variants=(Variant("none"),)))

    assert {field.name for field in dataclasses.fields(protocol)} == set(changes), "say what a new field does"
    for name, other in changes.items():
        assert not of(protocol) & of(dataclasses.replace(protocol, **{name: other})), name


def test_defaults_are_what_finished_runs_were_made_with():
    """Identities leave defaults out, so that a new field does not make every finished run unknown."""
    settings = [group.settings[0] for group in named("acc-table").groups() + named("self-labeling").groups()]
    seen = hashlib.sha256(json.dumps(to_json(settings), sort_keys=True).encode()).hexdigest()[:16]
    assert seen == "10115ec74b0ee0fb", (
        "Settings of studies look different. If a field was added, write the new hash here. If a default has changed or a value "
        "means something else, finished runs are no longer what they say: raise REVISION in spec.py as well.")


@pytest.mark.slow
def test_keys_are_the_same_in_every_process():
    program = "from studies.tiny import tiny_study; print(*[run.key for run in tiny_study().planned()])"
    printed = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
                             capture_output=True, text=True, check=True).stdout
    assert printed.split() == [run.key for run in tiny_study().planned()]


def test_files_hold_only_what_differs(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("""
        base = "acc-table"
        datasets = ["usps"]
        variants = ["none", {name = "harder", intervention = {kind = "Every", interval = 5, steps = [{kind = "SoftReset", keep = 0.5}]}},
          {name = "gentler", intervention = {kind = "BRB", interval = 10, keep = {layer0 = 0.9}, method = {n_init = 3}}}]
        [protocol]
        epochs = 10
    """)
    study, base = read_study(path), named("acc-table")
    assert study.name == "mine" and study.seeds == base.seeds and study.pretrained == base.pretrained
    assert study.about == "A form of acc-table."
    assert study.protocol == dataclasses.replace(base.protocol, epochs=10)
    assert study.variants[1].intervention == Every(5, (SoftReset(0.5),))
    assert study.variants[2].intervention == BRB(10, {"layer0": 0.9}, KMeans(n_init=3))
    assert write_study(Study("s", (Variant("none"),))) == 'name = "s"\nvariants = [\n  {name = "none"},\n]\n'


MINI = 'base = "acc-table-mini"\n'


@pytest.mark.parametrize(("text", "message"), [
    ('base = "acc-table"\nsets = ["usps"]', "a study has no 'sets'.*It has base, name"),
    ('base = "acc-table"\nseed = [1]', "did you mean 'seeds'"),
    ('base = "acc-table"\nseeds = [99999999999999999999]', r"below 2\*\*63"),
    ('variants = [{name = "a", intervention = {kind = "BRB", intervall = 3}}]', "BRB has no 'intervall', did you mean 'interval'"),
    ('base = "acc-tabel"', "no study named 'acc-tabel'.*acc-table"),
    ("seeds = [1]", "needs variants"),
    ('variants = ["bbr"]', "no variant named 'bbr'"),
    ('base = "momentum-reset"\nvariants = ["step"]', "no variant named 'step': choose among .*, step reset"),
    ('base = "acc-table"\nprotocol = {epoch = 3}', "AutoencoderProtocol has no 'epoch', did you mean 'epochs'"),
    ('variants = [{name = "x", intervention = {kind = "Evry"}}]', "Unknown kind of value 'Evry'"),
    ('variants = [{name = "x", intervention = {kind = "Every"}}]', "mine.toml.*missing"),
    ('base = "acc-table"\nseeds = []', "has no seeds"),
    ("x = = 3", "mine.toml"),
    ("base = 3", "base must be a text, got 3"),
    (f'{MINI}name = 5', "name of a study must be a text, got 5"),
    (f'{MINI}name = "a/b"', "names files of exported tables, got 'a/b': leave out slashes"),
    (f'{MINI}datasets = "digits"', "mine.toml: datasets must be a list, got 'digits'"),
    (f'{MINI}algorithms = "idec"', "algorithms must be a list"),
    (f'{MINI}variants = "brb"', "variants must be a list, got 'brb'"),
    (f'{MINI}seeds = 3', "seeds must be a list, got 3"),
    (f'{MINI}pretrained = true', "pretrained must be a list"),
    (f'{MINI}measures = "norms"', "measures must be a list"),
    (f'{MINI}pretrained = ["false"]', "each of pretrained must be true or false, got 'false'"),
    (f'{MINI}datasets = ["digits", "digits"]', "values of datasets must differ, got digits, digits"),
    (f'{MINI}algorithms = ["dec", "idec", "dec"]', "values of algorithms must differ"),
    (f'{MINI}pretrained = [true, true]', "values of pretrained must differ"),
    (f'{MINI}variants = [1]', 'each of variants must be a name such as "brb", or a table .*got 1'),
    (f'{MINI}variants = [{{name = 5}}]', "name of a variant must be a text, got 5"),
    (f'{MINI}variants = [{{name = "x", changes = 3}}]', "changes of 'x' must be a table"),
    (f'{MINI}precision = "fp16"', "precision must be one of auto, float32, float64, bf16, got 'fp16'"),
    (f'{MINI}protocol = "contrastive"', "protocol must be a value such as .*ContrastiveProtocol.*got 'contrastive'"),
    (f'{MINI}protocol = {{rows = 0}}', "rows must be an integer of at least 1, got 0"),
    (f'{MINI}protocol = {{side = 1.5}}', "side must be an integer of at least 1, got 1.5"),
    (f'{MINI}protocol = {{n_clusters = 0}}', "n_clusters must be an integer of at least 1"),
    (f'{MINI}protocol = {{classes = [1, 1]}}', "values of classes must differ"),
    (f'{MINI}protocol = {{classes = 1}}', "classes must be a list"),
    (f'{MINI}protocol = {{kind = "ContrastiveProtocol", rows = -1}}', "rows must be an integer"),
    (f'{MINI}variants = [{{name = "x", factors = 3}}]', "factors of 'x' must be a table"),
    (f'{MINI}variants = [{{name = "x", factors = {{seed = 3}}}}]', "'seed' cannot be a factor of 'x'.*choose another name"),
    (f'{MINI}variants = [{{name = "x", factors = {{keep = inf}}}}]', "factor 'keep' of 'x' must be a finite number, .*got inf"),
    (f'{MINI}variants = [{{name = "x", factors = {{keep = [1]}}}}]', "factor 'keep' of 'x' must be"),
    (f'{MINI}variants = [{{name = "x", changes = {{clustering = {{kind = "None"}}}}}}]', r"variant 'x' .*need a clustering; .*\{epochs = 0\}"),
    (f'{MINI}variants = [{{name = "x", changes = {{clustering = 3}}}}]', "variant 'x' cannot be trained: clustering=3"),
    (f'{MINI}variants = [{{name = "x", changes = {{objective = 3}}}}]', "variant 'x' cannot be trained: objective=3"),
    (f'{MINI}variants = [{{name = "x", changes = {{intervention = {{interval = 3}}}}}}]', "no intervention whose fields interval could be changed"),
    (f'{MINI}variants = [{{name = "x", changes = {{objective = {{kind = "DCNObjective"}}}}}}]',
     r"mine.toml: Two cells of the study 'mine' are the same run: digits, dec, from scratch, 'x', .*digits, idec, .*algorithms = \[\"idec\"\]"),
    (f'{MINI}largest_group = 1\nvariants = ["none", {{name = "same"}}]', "'none', seed 400 and .*'same', seed 400. Their settings are equal"),
    (f'{MINI}algorithms = ["dec"]\nvariants = [{{name = "x", changes = {{pretraining = {{kind = "Schedule", epochs = 5}}}}}}]',
     r"from scratch, .*pretrained, .*replaces the pretraining: .*pretrained = \[true\]"),
])
def test_mistakes_in_files_are_named(text, message, tmp_path):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_study(tmp_path / "mine.toml")


def test_names_of_variants_are_those_of_the_base(tmp_path):
    (tmp_path / "mine.toml").write_text('base = "acc-table-mini"\nvariants = ["none", "brb"]')
    assert read_study(tmp_path / "mine.toml").variants == named("acc-table-mini").variants[:2]


def test_changes_reach_into_values():
    settings = tiny_study().groups()[0].settings[0]
    assert changed(settings, {"clustering": {"lr": 0.5}, "augment": None}) == dataclasses.replace(
        settings, augment=None, clustering=dataclasses.replace(settings.clustering, lr=0.5))
    with pytest.raises(ValueError, match="Schedule has no field 'rate'"):
        changed(settings, {"clustering": {"rate": 0.5}})


def test_one_algorithm_is_enough_for_an_objective_of_ones_own():
    own = Variant("mine", changes={"objective": DCNObjective()})
    assert len(tiny_study(algorithms=("dec",), variants=(Variant("none"), own)).planned()) == 8


def test_changes_of_the_pretraining_count_where_there_is_one():
    study = tiny_study(algorithms=("dec",), variants=(Variant("none"), Variant("longer", changes={"pretraining": {"epochs": 5}})))
    seen = {(run.pretrained, run.variant): settings.pretraining and settings.pretraining.epochs
            for group in study.groups() for run, settings in zip(group.runs, group.settings, strict=True)}
    assert seen == {(True, "none"): 2, (True, "longer"): 5, (False, "none"): None, (False, "longer"): None}


@pytest.mark.parametrize("given", [{"variants": ("none",)}, {"variants": Variant("none")}, {"pretrained": (1,)}, {"protocol": AutoencoderProtocol}])
def test_mistakes_in_python_are_named(given):
    (name,) = given
    with pytest.raises(ValueError, match=f"{name} must be"):
        tiny_study(**given)


def test_numbers_of_numpy_are_plain_ones():
    study = tiny_study(seeds=np.arange(2), pretrained=np.array([True]), variants=(Variant("x", factors={"rows": np.int64(3)}),))
    json.dumps([study.seeds, study.pretrained, study.variants[0].factors])
    assert study.seeds == (0, 1) and study.pretrained == (True,) and study.variants[0].factors == {"rows": 3}


@pytest.mark.parametrize(("protocol", "algorithm"), [(AutoencoderProtocol, "idec"), (ContrastiveProtocol, "dec")])
def test_the_number_of_clusters_counts_for_known_sets_too(protocol, algorithm):
    def found(**given):
        return protocol(**given).settings("digits", algorithm, pretrained=True).n_clusters

    assert (found(), found(n_clusters=5)) == (10, 5)
    assert protocol(n_clusters=5).mini().n_clusters is None, "the digits have ten"


def test_epochs_of_a_variants_own_are_fewer_in_the_small_form_too():
    small = {variant.name: variant.changes for variant in named("best-variations-mini").variants}
    assert small["longer"]["pretraining"]["epochs"] == 20 and small["longer"]["clustering"] == {"epochs": 40}
    assert small["convolutional and residual, briefly"]["clustering"] == {"epochs": 5}
    assert next(one for one in named("contrastive-mini").variants if one.name == "k-means").changes["clustering"] == {"epochs": 0}
