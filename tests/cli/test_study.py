"""`reclust study`."""

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import time
import warnings
from types import SimpleNamespace

import pytest
from fuzzing import make_store
from studies.tiny import same_table, tiny_study

import reclust
from reclust.cli import common, main, study as study_command
from reclust.studies import Failure, RunSummary, Store, Variant, named, names, write_study


def test_failures_with_the_same_reason_are_grouped(capsys):
    failures = [Failure("mine", variant, "digits", "dcn", variant, False, seed, "Traceback\nout of luck")
                for variant in ("none", "mine") for seed in (1, 2)]
    study_command._print_summary(RunSummary("mine", 0, 0, failures), 1.0, SimpleNamespace(json=False, store="s"))
    assert "failed: digits dcn none, seed 1 and 3 more: out of luck\n" in capsys.readouterr().err


def test_a_study_from_a_file_runs_stops_continues_and_reports_failures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bad = Variant("bad", changes={"clustering": {"lr": 1e30}})
    study = tiny_study(name="mine", variants=(Variant("none"), bad), algorithms=("dcn",), pretrained=(False,))
    (tmp_path / "mine.toml").write_text(write_study(study))
    run = ["study", "run", "mine.toml", "--store", "s", "--device", "cpu"]
    assert main([*run, "--minutes", "1e-9"]) == 3
    assert "run the same command again" in capsys.readouterr().err
    assert main(run) == 1
    captured = capsys.readouterr()
    assert "2 runs finished" in captured.out and "failed: digits dcn bad, seed 3" in captured.err
    assert main(["study", "status", "--store", "s"]) == 1
    assert capsys.readouterr().out.splitlines()[1].split()[:5] == ["mine", "4", "2", "2", "0"]
    assert main(["study", "status", "mine", "--failures", "--store", "s"]) == 1
    assert "Traceback" in capsys.readouterr().out
    assert main(["study", "status", "--json", "--failures", "--store", "s"]) == 1
    (status,) = json.loads(capsys.readouterr().out)
    assert status["failed"] == 2 == len(status["failures"])
    assert main([*run, "--json", "--retry"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["failed"] == 2


def test_study_progress_lines_without_a_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(common, "PROGRESS_SECONDS", 0.0)
    study = tiny_study(name="mine", algorithms=("dcn",), pretrained=(False,), variants=(Variant("none"),))
    (tmp_path / "mine.toml").write_text(write_study(study))
    run = ["study", "run", str(tmp_path / "mine.toml"), "--device", "cpu", "--store"]
    assert main([*run, str(tmp_path / "one")]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "reclust: mine on digits: 2 runs waiting in 1 group, computed on cpu"
    assert len(said) == 4 and re.fullmatch(r"reclust: 50% done, about .* left", said[1])
    assert main([*run, str(tmp_path / "two"), "--quiet"]) == 0 and capsys.readouterr().err == ""


def test_names_of_a_study_send_nothing_to_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(common, "PROGRESS_SECONDS", 0.0)
    study = tiny_study(name="a\x1b[31m\rb", algorithms=("dcn",), pretrained=(False,), variants=(Variant("\x1b[2Jnone"),))
    (tmp_path / "mine.toml").write_text(write_study(study))
    run = ["study", "run", str(tmp_path / "mine.toml"), "--device", "cpu", "--store", str(tmp_path / "store")]
    assert main(run) == 0
    study_command._print_summary(RunSummary(study.name, 0, 0, [Failure("", "", "", "", study.variants[0].name, False, 0, "\x1b")]), 1.0,
                                 SimpleNamespace(json=False, store="s"))
    said = capsys.readouterr()
    assert not set("\x1b\r") & set(said.out + said.err)
    assert r"a\x1b[31m\x0db: " in said.out and r"a\x1b[31m\x0db on digits" in said.err and r"\x1b[2Jnone" in said.err


def test_stores_merge_and_export(tmp_path, capsys):
    study = tiny_study(name="mine", algorithms=("dcn",), pretrained=(False,), variants=(Variant("none"),))
    (tmp_path / "mine.toml").write_text(write_study(study))
    assert main(["study", "run", str(tmp_path / "mine.toml"), "--store", str(tmp_path / "one"), "--device", "cpu"]) == 0
    assert main(["study", "merge", str(tmp_path / "one"), "--store", str(tmp_path / "two"), "--json"]) == 0
    assert '"runs copied": 2' in capsys.readouterr().out
    assert main(["study", "export", "-o", str(tmp_path / "tables"), "--store", str(tmp_path / "two")]) == 0
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["mine.clustering.csv", "mine.runs.csv"]


def test_warnings_are_one_line(tmp_path, capsys):
    study = tiny_study(name="own", algorithms=("dec",), pretrained=(False,), seeds=(3,), variants=(Variant("late", reclust.BRB(9)),))
    (tmp_path / "own.toml").write_text(write_study(study))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(["study", "run", str(tmp_path / "own.toml"), "--store", str(tmp_path / "s"), "--device", "cpu", "--json"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == ["reclust: warning: These variants of own have an intervention that never fires in their epochs: "
                                     "'late' (4 epochs). Train longer, or choose a shorter interval."]
    assert json.loads(said.out)[0]["finished"] == 1


def test_studies_are_listed_and_shown(capsys):
    assert main(["study", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed] == names() and listed[0]["runs"] == 1440
    assert main(["study", "show", "acc-table", "--mini"]) == 0
    assert capsys.readouterr().out == write_study(named("acc-table-mini"))


@pytest.mark.slow
def test_a_study_survives_kills(tmp_path):
    """Killed at three moments and called again, the study ends with the same numbers as an undisturbed one."""
    chance = random.Random(1)

    def command(store):
        return [sys.executable, "-m", "reclust", "study", "run", "acc-table", "--mini", "--store", str(tmp_path / store),
                "--threads", "1", "--device", "cpu", "--quiet"]

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    assert subprocess.run(command("undisturbed"), env=environment).returncode == 0
    for _ in range(3):
        killed = subprocess.Popen(command("killed"), env=environment)
        time.sleep(chance.uniform(8, 30))
        killed.kill()
        killed.wait()
    assert subprocess.run(command("killed"), env=environment).returncode == 0
    with Store(tmp_path / "undisturbed") as one, Store(tmp_path / "killed") as other:
        assert same_table(one, other, "acc-table-mini")


def test_tables_and_figures_of_a_study(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(write_study(tiny_study(name="own", algorithms=("dec",), variants=(Variant("none"), Variant("brb", reclust.BRB(1))))))
    assert main(["study", "run", "own.toml", "--store", "s.sqlite", "--quiet", "--device", "cpu", "--baselines"]) == 0
    capsys.readouterr()
    (tmp_path / "report.html").write_text("my thesis")
    assert main(["report", "s.sqlite"]) == 1 and "is no report of reclust" in capsys.readouterr().err
    assert (tmp_path / "report.html").read_text() == "my thesis"
    assert main(["table", "s.sqlite"]) == 0
    shown = capsys.readouterr().out
    assert "own, ACC" in shown and "+BRB" in shown and "\033" not in shown
    for ending in ("csv", "md", "tex", "txt"):
        assert main(["table", "s.sqlite", "--study", "own", "-o", f"t.{ending}"]) == 0 and (tmp_path / f"t.{ending}").stat().st_size > 100
    assert main(["table", "s.sqlite", "-o", "t.doc"]) == 1 and "use one of" in capsys.readouterr().err
    assert main(["figure"]) == 0 and "learning-curves" in capsys.readouterr().out
    assert main(["figure", "s.sqlite", "learning-curves", "--study", "own", "-o", "curves.svg"]) == 0
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")
    assert main(["figure", "s.sqlite", "learning-curves", "--study", "own", "-o", "drawn/here"]) == 0
    assert (tmp_path / "drawn" / "here" / "learning-curves.pdf").is_file()
    with Store("s.sqlite") as store:
        store.plan("not begun", "spec", named("voronoi").planned())
    assert main(["table", "s.sqlite"]) == 0 and "own, ACC" in capsys.readouterr().out
    assert main(["figure", "s.sqlite", "voronoi"]) == 1
    assert re.search("study run voronoi .* or choose another one with --study: .*own", capsys.readouterr().err)
    assert main(["figure", "s.sqlite", "-o", "all"]) == 1
    told = capsys.readouterr()
    assert "all: 0 figures" in told.out and re.fullmatch("no runs for: learning-curves, .* tells which study to run\n", told.err)


WRONG = {  # a change of a store, and commands that it must not break without a word about the file
    "UPDATE runs SET state = 'failed', error = NULL": ["study status --failures"],
    "UPDATE runs SET state = 'failed', error = ''": ["study status --failures"],
    "UPDATE runs SET seconds = 9e999": ["study status"],
    "UPDATE plan SET seed = x'00ff'; UPDATE runs SET state = 'failed'": ["study status --json --failures"],
    "UPDATE runs SET acc = NULL": ["report -o r.html --no-figures", "table"],
    "DELETE FROM arrays": ["report -o r.html --no-figures"],
    "UPDATE studies SET spec = '{\"kind\":\"Study\",\"fields\":3}'": ["report -o r.html --no-figures", "table", "study export -o folder"],
    "UPDATE plan SET study = ''; UPDATE studies SET name = ''": ["report -o r.html --no-figures"],
    "UPDATE curves SET name = 'embedding' WHERE name = 'loss'; UPDATE curves SET name = 'centers' WHERE name = 'accuracy'": ["report -o r.html"],
}


@pytest.mark.parametrize(("change", "commands"), WRONG.items(), ids=WRONG)
def test_wrong_values_in_a_store_are_told_with_its_name(change, commands, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_store(tmp_path / "s.sqlite")
    with sqlite3.connect("s.sqlite") as connection:
        connection.execute("DELETE FROM plan WHERE study = 't'")
        connection.execute("DELETE FROM studies WHERE name = 't'")
        connection.executescript(change)
    for command in commands:
        words = command.split()
        code = main([*words, "--store", "s.sqlite"] if words[0] == "study" else [words[0], "s.sqlite", *words[1:]])
        told = capsys.readouterr().err
        assert code == 0 or told.startswith("reclust: error: The store s.sqlite cannot be used: ") or "s.sqlite has no" in told, (command, told)


def test_what_is_wrong_with_a_command_is_not_blamed_on_the_store(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_store(tmp_path / "s.sqlite")
    for words, message in (("table --study x", "has no study 'x'"), ("figure radar -o r.doc", "study run|no known format"), ("figure x", "there is no figure 'x'")):
        name, *rest = words.split()
        assert main([name, "s.sqlite", *rest]) == 1
        told = capsys.readouterr().err
        assert re.search(message, told) and "cannot be used" not in told


def test_a_study_needs_a_name():
    with pytest.raises(ValueError, match="A name must be text and not empty"):
        tiny_study(name="")
