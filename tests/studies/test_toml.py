"""TOML files hold whole studies, and mistakes in them are named."""

import dataclasses

import pytest

from reclust import BRB, Every, KMeans, SoftReset
from reclust.studies import Study, Variant, named, names, read_study, toml, write_study
from reclust.utils.values import from_json, to_json


@pytest.mark.parametrize("name", names())
def test_a_study_survives_files(name, tmp_path):
    for study in (named(name), named(f"{name}-mini")):
        (tmp_path / "study.toml").write_text(write_study(study))
        assert toml._study(toml.read_toml(tmp_path / "study.toml")) == study
        assert from_json(to_json(study)) == study


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
    assert study.about == "A form of acc-table." and study.variants[0] == base.variants[0]
    assert study.protocol == dataclasses.replace(base.protocol, epochs=10)
    assert study.variants[1].intervention == Every(5, (SoftReset(0.5),))
    assert study.variants[2].intervention == BRB(10, {"layer0": 0.9}, KMeans(n_init=3))
    assert write_study(Study("s", (Variant("none"),))) == 'name = "s"\nvariants = [\n  {name = "none"},\n]\n'


MINI = 'base = "acc-table-mini"\n'


@pytest.mark.parametrize(("text", "message"), [
    (f'{MINI}sets = ["usps"]', "A study has no 'sets'; it has base, name"),
    (f"{MINI}seed = [1]", "A study has no 'seed'; it has .*seeds"),
    (f"{MINI}seeds = 3", "seeds must be a sequence of integers"),
    (f'{MINI}datasets = "digits"', "mine.toml: datasets must be a list, got 'digits'"),
    (f'{MINI}protocol = "contrastive"', "protocol must be an instance of StudyProtocol, got 'contrastive'"),
    (f"{MINI}protocol = {{epoch = 3}}", "AutoencoderProtocol has no 'epoch'; it has .*epochs"),
    (f"{MINI}protocol = {{rows = 0}}", "rows must be an integer of at least 1, got 0"),
    ('base = "acc-tabel"', "no study named 'acc-tabel'.*acc-table"),
    ("seeds = [1]", "mine.toml: .*missing.*variants"),
    ("x = = 3", "mine.toml"),
    ('variants = ["bbr"]', "no variant named 'bbr'"),
    ('base = "momentum-reset"\nvariants = ["step"]', "no variant named 'step': choose from .*, step reset"),
    ('variants = [{name = "x", intervention = {kind = "Evry"}}]', "Unknown kind of value 'Evry'"),
    ('variants = [{name = "x", intervention = {kind = "Every"}}]', "mine.toml.*missing"),
    ('variants = [{name = "a", intervention = {kind = "BRB", intervall = 3}}]', "BRB has no 'intervall'; it has .*interval"),
    (f"{MINI}protocol = {{kind = 3}}", "mine.toml: Unknown kind of value '3'"),
    (f'{MINI}variants = [{{kind = [1], name = "x"}}]', r"mine.toml: Unknown kind of value '\[1\]'"),
    (f"{MINI}name = 3", "mine.toml: A name must be text and not empty, got 3"),
    (f"{MINI}variants = [{{name = 3}}]", "mine.toml: A name must be text and not empty, got 3"),
    (f'{MINI}variants = [{{name = "x", intervention = {{kind = "SoftReset", keep = 1{"0" * 400}}}}}]', "mine.toml"),
    (f"{MINI}variants = [3]", "mine.toml: There is no variant named 3"),
    ("base = 3", "mine.toml: There is no study named '3'"),
    (f"{MINI}seeds = []", "mine.toml: seeds must be one or more, all different, got none"),
    (f"{MINI}datasets = []", "mine.toml: datasets must be one or more, all different, got none"),
    (f'{MINI}variants = [{{name = "x", changes = {{clustering = {{rate = 3}}}}}}]', "variant 'x' cannot be trained: .*rate"),
    (f'{MINI}variants = [{{name = "x", changes = {{objective = 3}}}}]', "variant 'x' cannot be trained: .*objective"),
])
def test_mistakes_in_files_are_named(text, message, tmp_path):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_study(tmp_path / "mine.toml")


def test_any_text_comes_back(tmp_path):
    (tmp_path / "a.toml").write_text(f'{MINI}about = "ä 😀 \\u007f"', encoding="utf-8")
    study = read_study(tmp_path / "a.toml")
    (tmp_path / "b.toml").write_text(write_study(study), encoding="utf-8")
    assert study.about == "ä 😀 \x7f" and dataclasses.replace(read_study(tmp_path / "b.toml"), name=study.name) == study
