"""Dependencies that are pinned match those that are declared."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def requirements(lines):
    """Name -> what is said of its version."""
    found = (re.match(r"([A-Za-z0-9_.-]+)\s*(?:\[[^]]*\])?\s*([^;#]*)", line) for line in lines if line and not line.startswith("#"))
    return {match[1].lower().replace("_", "-"): match[2].strip() for match in found}


@pytest.fixture
def project():
    if sys.version_info < (3, 11):
        pytest.skip("tomllib came with Python 3.11")
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_oldest_dependencies_that_are_tested_are_those_allowed(project):
    allowed, tested = requirements(project["dependencies"]), requirements((ROOT / "requirements-min.txt").read_text().splitlines())
    assert allowed.keys() == tested.keys()
    for name, given in tested.items():
        least, exact = given.removeprefix("=="), allowed[name].removeprefix(">=")
        assert least == exact or least.startswith(f"{exact}.") or name == "typing-extensions", name  # which torch wants newer


def test_the_lock_pins_every_dependency_of_development_by_its_hash(project):
    lines = [line for line in (ROOT / "requirements-dev.lock").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    extras = project["optional-dependencies"]
    wanted = requirements([*project["dependencies"], *(line for name in ("dev", "data", "plot", "cli", "study", "onnx") for line in extras[name]
                                                       if "python_version <" not in line)])
    assert set(wanted) - {"reclust"} <= set(requirements(lines))
