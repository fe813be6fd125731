"""`reclust table`, `reclust figure` and `reclust report`."""

import re

from studies.tiny import tiny_study

import reclust
from reclust.cli import main
from reclust.studies import Store, Variant, named, write_study


def test_tables_and_figures_of_a_study(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(write_study(tiny_study(name="own", algorithms=("dec",), variants=(Variant("none"), Variant("brb", reclust.BRB(1))))))
    assert main(["study", "run", "own.toml", "--store", "s.sqlite", "--quiet", "--device", "cpu", "--baselines"]) == 0
    capsys.readouterr()
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
