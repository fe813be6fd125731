"""Files, metadata and command of an installation; `make test-wheel` runs this against the wheel."""

import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import pytest

import reclust

INSTALLED = Path(reclust.__file__).parent
FROM_SOURCE = INSTALLED == Path(__file__).parents[1] / "src" / "reclust"


def test_data_files_are_installed():
    for package, pattern in (("reclust", "py.typed"), ("reclust.report", "assets/*"), ("reclust.studies.published", "*.csv")):
        folder = Path(str(resources.files(package)))
        assert list(folder.glob(pattern)), f"{package} has no {pattern}"


def test_every_module_is_installed():
    source = Path(__file__).parents[1] / "src" / "reclust"
    modules = {path.relative_to(source) for path in source.rglob("*.py")}
    assert modules <= {path.relative_to(INSTALLED) for path in INSTALLED.rglob("*.py")}


@pytest.mark.skipif(FROM_SOURCE, reason="runs against an installation, see make test-wheel")
def test_metadata_and_command():
    about = metadata.metadata("reclust")
    assert about["Version"] == reclust.__version__ == metadata.version("reclust")
    assert about["License-Expression"] == "MIT" and any("LICENSE" in str(file) for file in metadata.files("reclust"))
    command = subprocess.run([Path(sys.executable).with_name("reclust"), "--version"], capture_output=True, text=True, check=True)
    assert command.stdout == f"reclust {reclust.__version__}\n"


@pytest.mark.slow
def test_the_wheel_in_a_fresh_environment():
    root = Path(__file__).parents[1]
    ran = subprocess.run(["make", "test-wheel", f"PYTHON={sys.executable}"], cwd=root, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
