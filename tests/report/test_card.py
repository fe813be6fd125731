"""The card of a model, in a notebook, a terminal and a program."""

import json

import numpy as np
import pandas as pd
import pytest

from reclust import IDEC, Reclust
from reclust.cli import main
from reclust.report.card import as_lines, card

TABLE = pd.DataFrame({"<size>": np.r_[np.zeros(30), np.ones(30)] + np.linspace(0, 0.1, 60), "kind": ["a", "b"] * 30})


@pytest.fixture(scope="module")
def model():
    return Reclust(2, effort="quick", random_state=0).fit(TABLE)


def test_the_card_is_plain_data(model):
    facts = card(model)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["samples"] == 60 and sum(facts["sizes"]) == 60 and facts["features"][0] == "<size>"
    assert facts["agreement"] == round(model.agreement_, 3) and facts["warnings"] == model.warnings_


def test_a_fitted_model_shows_its_card_and_another_its_parameters(model):
    page = model._repr_mimebundle_()["text/html"]
    assert "&lt;size&gt;" in page and "<size>" not in page
    assert "agreement with k-means" not in Reclust(2)._repr_mimebundle_()["text/html"]


@pytest.mark.filterwarnings("ignore::reclust.ReclustWarning")
def test_show_prints_the_card_of_a_file(model, tmp_path, capsys, monkeypatch):
    model.save(tmp_path / "model.reclust")
    assert main(["show", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "Reclust(" in printed and "<size>, kind=a" in printed and "torch" in printed and "none" in printed
    monkeypatch.setattr(model, "warnings_", ["A long warning " + "is not cut " * 20])
    assert as_lines(model)[-2] == ("warnings", model.warnings_[0])
    images = np.random.default_rng(0).integers(0, 200, size=(20, 6, 6), dtype=np.uint8)
    IDEC(2, pretrain_epochs=1, epochs=1, intervention=None, random_state=0).fit(images).save(tmp_path / "i.reclust")
    assert main(["show", str(tmp_path / "i.reclust"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["features"] == [6, 6, 1]


def test_predict_prints_json(model, tmp_path, capsys):
    model.save(tmp_path / "model.reclust")
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    assert main(["predict", str(tmp_path), str(tmp_path / "table.csv"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["cluster"] for row in rows] == model.labels_.tolist()
    np.testing.assert_allclose([row["confidence"] for row in rows], model.predict_proba(TABLE).max(1), atol=1e-3)
