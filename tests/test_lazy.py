"""Names come when they are first used, and commands that only read do so without torch and scikit-learn."""

import ast
import json
import os
import pickle
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from studies.invented import fill

import reclust
from reclust.studies import Store

ROOT = Path(reclust.__file__).parent
MODULES = {".".join(("reclust", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
           for path in ROOT.rglob("*.py")}


@cache
def parsed(module):
    return ast.parse(MODULES[module].read_text())


def test_names_are_what_they_were():
    everything = {}
    exec("from reclust import *", everything)
    assert everything.keys() >= set(reclust.__all__) and everything["IDEC"] is reclust.IDEC
    settings = reclust.Settings(3, reclust.IDECObjective())
    assert pickle.loads(pickle.dumps(settings)) == settings and reclust.data.names()
    with pytest.raises(AttributeError, match="No reclust attribute IDCE"):
        reclust.IDCE  # noqa: B018
    with pytest.raises(ImportError, match="IDCE"):
        exec("from reclust import IDCE")


def python(code, *given):
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


READING = """
import contextlib, io, json, sys
brought = {}
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        from reclust.cli import main
        assert main(command) == 0, command
    brought[" ".join(command[:2])] = sorted({"torch", "sklearn"} & set(sys.modules))
print(json.dumps(brought))
"""


def test_who_reads_does_not_wait_for_torch(tmp_path):
    path, folder = str(tmp_path / "s.sqlite"), str(tmp_path)
    with Store(path) as store:
        for study, used in (("acc-table", "usps"), ("runtime", "mnist")):
            fill(store, study, seeds=2, sets=(used,))
    commands = [["--version"], ["--help"], ["study", "list"], ["study", "status", "--store", path], ["table", path],
                ["study", "retry", "runtime", "--store", path], ["study", "merge", path, "--store", f"{path}.other"],
                ["study", "compact", path, "-o", f"{path}.small"], ["figure", "--list"], ["data", "list", "--folder", folder]]
    for needed, command in (("pandas", ["study", "export", "--store", path, "-o", folder]), ("shtab", ["completion", "bash"]),
                            ("matplotlib", ["figure", path, "runtime", "-o", f"{path}.svg"])):
        if find_spec(needed) is not None:
            commands.append(command)
    brought = python(READING, json.dumps(commands))
    assert len(brought) == len(commands) and not any(brought.values()), brought


def test_files_find_every_kind_of_value():
    """Also in a program that imported nothing else."""
    kinds = [node.name for module in MODULES for node in parsed(module).body if isinstance(node, ast.ClassDef)
             and any(isinstance(one, ast.Name) and one.id == "value" for one in node.decorator_list)]
    never_stored = {"Kept", "Layout", "Limits"}
    code = "import json, sys\nfrom reclust.utils.values import kind_named\nprint(json.dumps([kind_named(n).__name__ for n in sys.argv[1:]]))"
    stored = [name for name in kinds if name not in never_stored]
    assert len(stored) > 40 and python(code, *stored) == stored
