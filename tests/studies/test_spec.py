"""Studies are values: they expand into the same groups everywhere, and files hold all of them."""

import dataclasses
import hashlib
import json
import subprocess
import sys

import pytest

from reclust import Every, SoftReset
from reclust.settings import one_each
from reclust.studies import Study, Variant, named, names, read_study, write_study
from reclust.studies.spec import changed
from reclust.values import from_json, to_json
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


def test_studies_of_the_same_runs_share_them():
    assert {run.key for run in named("from-scratch").planned()} < {run.key for run in named("acc-table").planned()}


def test_every_choice_that_changes_a_result_changes_the_keys():
    base = {run.key for run in tiny_study().planned()}
    others = [
        tiny_study(seeds=(3, 5)), tiny_study(seeds=(4, 3)), tiny_study(evaluate_every=3), tiny_study(largest_group=2),
        tiny_study(protocol=dataclasses.replace(tiny_study().protocol, epochs=5)),
        tiny_study(protocol=dataclasses.replace(tiny_study().protocol, rows=99)),
        tiny_study(variants=(Variant("none"), Variant("brb", Every(3, (SoftReset(0.8),))))),
        tiny_study(pretraining_seeds=(3, 4, 5), pretrained=(True,)),
    ]
    for other in others:
        changed_keys = {run.key for run in other.planned()}
        assert not (base & changed_keys) or other.largest_group == 2, other
    renamed = tiny_study(name="other", about="other", small_variants=("none",))
    assert {run.key for run in renamed.planned()} == base, "names change nothing"
    fewer = tiny_study(algorithms=("dec",))
    assert {run.key for run in fewer.planned()} < base, "other groups stay as they are"


def test_defaults_are_what_finished_runs_were_made_with():
    """Identities leave defaults out, so that a new field does not make every finished run unknown."""
    settings = [group.settings[0] for group in named("acc-table").groups() + named("self-labeling").groups()]
    seen = hashlib.sha256(json.dumps(to_json(settings), sort_keys=True).encode()).hexdigest()[:16]
    assert seen == "7d0430b60a1a6e82", (
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
        variants = ["none", {name = "harder", intervention = {kind = "Every", interval = 5, steps = [{kind = "SoftReset", keep = 0.5}]}}]
        [protocol]
        epochs = 10
    """)
    study, base = read_study(path), named("acc-table")
    assert study.name == "mine" and study.seeds == base.seeds and study.pretrained == base.pretrained
    assert study.protocol == dataclasses.replace(base.protocol, epochs=10)
    assert study.variants[1].intervention == Every(5, (SoftReset(0.5),))
    assert write_study(Study("s", (Variant("none"),))) == 'name = "s"\nvariants = [\n  {name = "none"},\n]\n'


@pytest.mark.parametrize(("text", "message"), [
    ('base = "acc-table"\nsets = ["usps"]', "a study has no 'sets'.*It has base, name"),
    ('base = "acc-table"\nseed = [1]', "did you mean 'seeds'"),
    ('base = "acc-tabel"', "no study named 'acc-tabel'.*acc-table"),
    ("seeds = [1]", "needs variants"),
    ('variants = ["bbr"]', "no variant named 'bbr'"),
    ('base = "acc-table"\nprotocol = {epoch = 3}', "AutoencoderProtocol has no 'epoch', did you mean 'epochs'"),
    ('variants = [{name = "x", intervention = {kind = "Evry"}}]', "Unknown kind of value 'Evry'"),
    ('variants = [{name = "x", intervention = {kind = "Every"}}]', "mine.toml.*missing"),
    ('base = "acc-table"\nseeds = []', "has no seeds"),
    ("x = = 3", "mine.toml"),
])
def test_mistakes_in_files_are_named(text, message, tmp_path):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_study(tmp_path / "mine.toml")


def test_changes_reach_into_values():
    settings = tiny_study().groups()[0].settings[0]
    assert changed(settings, {"clustering": {"lr": 0.5}, "augment": None}) == dataclasses.replace(
        settings, augment=None, clustering=dataclasses.replace(settings.clustering, lr=0.5))
    with pytest.raises(ValueError, match="Schedule has no field 'rate'"):
        changed(settings, {"clustering": {"rate": 0.5}})
