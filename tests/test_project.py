"""Project files agree with each other."""

import re
import sys
from pathlib import Path

import pytest

import reclust

ROOT = Path(__file__).parents[1]


def requirements(lines):
    """Version by package name."""
    found = (re.match(r"([A-Za-z0-9_.-]+)\s*(?:\[[^]]*\])?\s*([^;#]*)", line) for line in lines if line and not line.startswith("#"))
    return {match[1].lower().replace("_", "-"): match[2].strip() for match in found}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is new in Python 3.11")
def test_make_test_min_installs_the_oldest_dependencies():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    allowed, tested = requirements(project["dependencies"]), requirements((ROOT / "requirements-min.txt").read_text().splitlines())
    assert allowed.keys() == tested.keys()
    for name, given in tested.items():
        oldest, exact = allowed[name].removeprefix(">="), given.removeprefix("==")
        assert exact == oldest or exact.startswith(f"{oldest}.") or name == "typing-extensions", name  # torch needs a newer one


def test_a_release_sets_the_version_everywhere(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import release

    files = ("src/reclust/utils/version.py", "CITATION.cff", "CHANGELOG.md")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    release.release("7.8.9", tmp_path)
    version, citation, changes = ((tmp_path / name).read_text() for name in files)
    assert '__version__ = "7.8.9"' in version and "\nversion: 7.8.9\n" in citation
    assert changes.count("## Unreleased\n\n## 7.8.9\n- ") == 1 and "git tag v7.8.9" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        release.release("next", tmp_path)


def test_the_version_is_the_same_everywhere():
    assert f"\nversion: {reclust.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_paths_in_the_makefile_exist():
    makefile = (ROOT / "Makefile").read_text()
    paths = {path.rstrip(".") for path in re.findall(r"\b(?:tests|examples|tools|benchmarks)/\w[\w/.]*", makefile)}
    folders = re.search(r"addprefix tests/,([\w \\\n]+)\)", makefile)[1].replace("\\", " ").split()
    assert len(folders) > 5
    assert not [path for path in paths | {f"tests/{folder}" for folder in folders} if not (ROOT / path).exists()]


def test_contributing_lists_every_folder():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    folders = [path.name for path in (ROOT / "src/reclust").iterdir() if (path / "__init__.py").exists()]
    assert not [folder for folder in folders if f"`{folder}/`" not in text]
