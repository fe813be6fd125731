"""Errors, exit codes and options that all commands share."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reclust.cli import main, parser
from reclust.cli.common import check_paths
from reclust.studies import PlannedRun, Store, Study, published


@pytest.mark.parametrize(("given", "message"), [
    (["fit", "nowhere.npy", "-k", "3", "-o", "out"], "nowhere.npy"),
    (["predict", "nowhere.reclust", "x.npy"], "nowhere.reclust"),
    (["fit", "digits", "-k", "3", "--labels", "group", "--key", "a"], "--labels, --key cannot be used with the data set digits"),
    (["fit", "x.npy", "-k", "3", "--labels", "group"], "labels='group'"),
    (["suggest-k", "x.npy", "--key", "a"], "key='a'"),
    (["suggest-k", "x.npy", "--from", "5", "--to", "4"], "between 5 and 4"),
    (["study", "run", "acc-tabel"], "acc-tabel.*acc-table"),
    (["study", "run", "missing.toml"], "missing.toml"),
    (["study", "status"], "no store studies.sqlite"),
    (["study", "run", "acc-table", "--data", "nowhere"], "no folder nowhere"),
    (["table", "nowhere.sqlite"], "no store nowhere.sqlite"),
    (["--import", "./x.py", "fit", "x.npy", "-k", "2"], "No module named './x'"),
])
def test_errors_are_one_line(given, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros((3, 2)))
    assert main(given) == 1
    error = capsys.readouterr().err
    assert re.search(message, error) and error.startswith("reclust: error: ") and "Traceback" not in error
    with pytest.raises(Exception, match=message):
        main(["--traceback", *given])
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"], "no files are left behind"


@pytest.mark.parametrize(("given", "options"), [
    (["--datasets", "mnist"], "no dataset 'mnist'"), (["--algorithms", "dbscan"], "no algorithm 'dbscan'; it has dec, idec, dcn"),
    (["--variants", "worse"], "no variant 'worse'; it has none, brb"), (["--on", "processes", "--workers", "0"], "at least 1"),
])
def test_unknown_parts_of_a_study_are_errors(given, options, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "run", "acc-table", "--mini", *given]) == 1 and options in capsys.readouterr().err


@pytest.mark.parametrize(("given", "patched", "message"), [
    (["fit", "x.npy", "-k", "3"], "reclust.cli.fit.read_data", "interrupted: run the same command again to continue"),
    (["study", "run", "acc-table"], "reclust.cli.study._study", "stopped early: run the same command again to continue"),
    (["suggest-k", "x.npy"], "reclust.cli.fit.read_data", "interrupted"),
])
def test_ctrl_c_prints_whether_the_command_can_continue(given, patched, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(patched, stop)
    assert main(given) == 130 and capsys.readouterr().err == f"reclust: {message}\n"


@pytest.mark.parametrize("given", [[], ["study"], ["fit"], ["fit", "x.npy", "-k", "many"], ["study", "run"], ["no"]])
def test_wrong_usage_exits_with_2(given, capsys):
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2 and "usage: reclust" in capsys.readouterr().err


def test_import_makes_custom_classes_known(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "my_classes.py").write_text("""
from typing import ClassVar
from reclust import Step, value
@value
class Nothing(Step):
    part: ClassVar[str] = "nothing"
    def __call__(self, target): pass
""")
    (tmp_path / "study.toml").write_text('variants = [{name = "x", intervention = {kind = "Every", interval = 1, steps = [{kind = "Nothing"}]}}]')
    assert main(["study", "show", "study.toml"]) == 1
    assert "Unknown kind of value 'Nothing'" in capsys.readouterr().err
    assert main(["--import", "my_classes", "study", "show", "study.toml"]) == 0
    assert 'kind = "Nothing"' in capsys.readouterr().out


def test_the_listed_studies_are_those_of_the_catalog(monkeypatch):
    """Numbers of runs are compared in studies/test_study.py."""
    tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "catalog.py"))
    monkeypatch.setattr(Study, "planned", lambda _: [])
    assert [{**row, "runs": "0", "mini": "0"} for row in published.catalog()] == tool["rows"](), "run tools/catalog.py"


def test_every_command_has_a_description(capsys):
    def walk(found, path):
        assert found.description, path
        for action in found._actions:
            for name, child in (getattr(action, "choices", None) or {}).items() if action.nargs == "A..." else ():
                walk(child, [*path, name])

    walk(parser(), ["reclust"])


def test_completion_script_knows_the_commands(capsys):
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    assert "study" in capsys.readouterr().out


@pytest.mark.parametrize("given", [
    ["fit", "x.npy", "-k", "2", "-o", "o", "--report", "o/model.reclust"],
    ["fit", "x.npy", "-k", "2", "-o", "o", "--report", "o/../o/labels.csv"],
    ["fit", "x.npy", "-k", "2", "-o", "o", "--report", "o/fit.checkpoint"],
    ["fit", "x.npy", "-k", "2", "-o", "o", "--report", "link.npy"],
    ["predict", "m.reclust", "x.npy", "-o", "new", "--report", "./new"],
    ["table", "s.sqlite", "-o", "s.sqlite"],
    ["table", "s.sqlite", "-o", "s.sqlite-wal"],
    ["report", "s.sqlite", "-o", "s.sqlite"],
    ["report", "s.sqlite", "-o", "link.sqlite"],
    ["figure", "voronoi.pdf", "voronoi", "-o", "."],
    ["figure", "voronoi.pdf", "-o", "."],
    ["figure", "voronoi.pdf", "voronoi", "-o", "voronoi.pdf"],
    ["study", "run", "x.toml", "--store", "x.toml"],
    ["study", "merge", "s.sqlite", "--store", "link.sqlite"],
    ["study", "compact", "s.sqlite", "-o", "s.sqlite"],
    ["study", "export", "--store", "s.runs.csv", "-o", "."],
])
def test_an_output_is_no_input_and_no_other_output(given, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros((4, 2)))
    for name in ("m.reclust", "x.toml"):
        Path(name).write_text("given")
    for name in ("s.sqlite", "voronoi.pdf", "s.runs.csv"):
        with Store(name) as store:
            store.plan("s", "spec", [])
    Path("link.npy").symlink_to("x.npy")
    Path("link.sqlite").symlink_to("s.sqlite")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(given) == 1
    assert re.search("is an input or another output|cannot be that of a file", capsys.readouterr().err)
    assert before == {path: path.read_bytes() for path in before}


@pytest.mark.parametrize("link", ["images/link.png", "images/folder"])
def test_an_image_read_through_a_link_is_no_output(link, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "images").mkdir()
    (tmp_path / "elsewhere/real.png").write_text("given")
    (tmp_path / link).symlink_to(tmp_path / ("elsewhere" if link.endswith("folder") else "elsewhere/real.png"))
    with pytest.raises(FileExistsError, match=r"real\.png is an input or another output"):
        check_paths([str(tmp_path / "images")], [str(tmp_path / "elsewhere/real.png")])
    (tmp_path / "images/round.png").symlink_to("round.png")  # a broken image, which may be skipped
    check_paths([str(tmp_path / "images")], [str(tmp_path / "elsewhere/other.png")])


def test_a_report_lies_in_the_folder_that_a_fit_makes_but_is_not_that_folder(tmp_path):
    check_paths([], [tmp_path / "new" / "labels.csv", str(tmp_path / "new" / "report.html")], tmp_path / "new")
    with pytest.raises(FileExistsError, match="another output"):
        check_paths([], [tmp_path / "new" / "labels.csv", str(tmp_path / "new")], tmp_path / "new")
    with pytest.raises(FileNotFoundError, match="no folder"):
        check_paths([], [str(tmp_path / "new" / "deeper" / "report.html")], tmp_path / "new")


def test_devices_may_be_named_twice(tmp_path):
    check_paths([], ["/dev/null", "/dev/null"])


@pytest.mark.parametrize("how", ["cp1252", "closed", "both closed", "pipe"])
@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the streams")
def test_consoles_do_not_turn_success_into_failure(how, tmp_path):
    """Of a command whose output no Windows console has all characters for."""
    command = f"{sys.executable} -m reclust study list --json; echo $? > code" if how != "cp1252" else (
        f"{sys.executable} -m reclust data list; echo $? > code")
    command = {"cp1252": command, "closed": command.replace("list --json", "list --json >&-"), "both closed": command.replace("list --json", "list --json >&- 2>&-"),
               "pipe": "set -o pipefail; (" + command + ") | true"}[how]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii" if how == "cp1252" else "utf-8", "RECLUST_DATA": str(tmp_path)}
    told = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True)
    assert (tmp_path / "code").read_text().strip() == "0" and b"Traceback" not in told.stderr and b"Exception" not in told.stderr


def test_escape_sequences_of_names_never_reach_a_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = "\x1b]0;evil\x07\x9b31m"
    assert main(["fit", f"{name}.npy", "-k", "2"]) == 1
    with Store("s.sqlite") as store:
        run = PlannedRun("r", "g", name, name, name, False, 0)
        store.plan(name, "spec", [run])
        store.fail("g", ["r"], f"Error: {name}")
    assert main(["study", "status", "--store", "s.sqlite", "--failures"]) == 1
    told = "".join(capsys.readouterr())
    assert told.count("evil") >= 4 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", told)


def test_errors_without_words_are_named(monkeypatch, capsys):
    def fails(arguments):
        raise MemoryError

    monkeypatch.setattr("reclust.cli.installation._doctor", fails)
    assert main(["doctor"]) == 1 and capsys.readouterr().err == "reclust: error: MemoryError\n"
