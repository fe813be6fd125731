"""`reclust data` and `reclust doctor` find what is missing or broken."""

import json
from importlib import metadata

import pytest
import torch

from reclust import __version__
from reclust.cli import installation, main


def find(findings, area, name):
    (one,) = [finding for finding in findings if (finding["area"], finding["name"]) == (area, name)]
    return one


def test_versions_and_devices():
    findings = installation.examine()
    assert find(findings, "versions", "reclust")["note"] == __version__
    assert find(findings, "devices", "cpu")["state"] == "fine"
    assert any(one["name"].startswith("cuda") for one in findings)


def test_a_set_that_is_here_and_cannot_be_read_is_broken_not_missing(tmp_path, capsys):
    file = tmp_path / "mnist.npz"
    file.write_bytes(b"PK no archive")
    assert main(["data", "check", "mnist", "usps", "nothing", "--folder", str(tmp_path), "--json"]) == 1
    mnist, *others = json.loads(capsys.readouterr().out)
    assert mnist["state"] == "broken" and str(file) in mnist["note"] and [one["state"] for one in others] == ["missing", "missing"]
    assert main(["data", "list", "--folder", str(tmp_path), "--json"]) == 0
    where = {one["name"]: one["where"] for one in json.loads(capsys.readouterr().out)}
    assert where["mnist"] == str(file) and where["usps"] == "not here" and where["digits"] == "embedded"


def test_exit_codes_and_text(capsys):
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.endswith("nothing is broken\n")
    assert main(["doctor", "--json"]) == 0
    assert {one["area"] for one in json.loads(capsys.readouterr().out)} == {"versions", "devices", "extras"}


def test_missing_extras_come_with_their_command(monkeypatch):
    asked = ["numpy>=1", "matplotlib>=3.7; extra == 'plot'", "no-such-package>=1; extra == 'nothing'", "reclust[plot]; extra == 'plot'"]
    monkeypatch.setattr(metadata, "requires", lambda name: asked)
    findings = installation.examine()
    assert find(findings, "extras", "nothing")["note"] == "without no-such-package: pip install 'reclust[nothing]'"
    if installation._version("matplotlib"):
        assert find(findings, "extras", "plot")["state"] == "fine"


def test_a_missing_core_package_is_broken(monkeypatch):
    monkeypatch.setattr(installation, "_requirements", lambda: {"": ["no-such-package"]})
    found = find(installation.examine(), "versions", "no-such-package")
    assert found["state"] == "broken" and found["note"] == "not installed: pip install no-such-package"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so():
    assert "runs on the CPU" in find(installation.examine(), "devices", "cuda")["note"]


def test_data_sets_are_listed_and_checked(tmp_path, capsys):
    assert main(["data", "list", "--folder", str(tmp_path)]) == 0
    assert "embedded" in capsys.readouterr().out
    assert main(["data", "check", "digits", "--folder", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["data", "check", "digits", "usps", "--folder", str(tmp_path), "--json"]) == 1
    assert [row["state"] for row in json.loads(capsys.readouterr().out)] == ["complete", "missing"]
