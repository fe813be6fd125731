"""Imports: no extras with `import reclust`, and no torch in commands that only read."""

import ast
import json
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from studies.invented import fill

import reclust
from reclust.studies import Store

PACKAGE = Path(reclust.__file__).parent
EXTRAS = {"matplotlib", "pandas", "pyarrow", "PIL", "h5py", "anndata", "ray", "onnx", "onnxruntime", "onnxscript", "umap", "shtab", "lightning",
          "pytorch_lightning", "tensorboard", "mlflow", "wandb", "sentence_transformers", "transformers", "triton"}


def python(code, *arguments):
    """Run code in another process and return the JSON that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_extras_are_not_imported():
    """torch and scikit-learn come first, since they may import some of them."""
    found = python("""
import json, sys, torch, sklearn.cluster
before = set(sys.modules)
from reclust import *
from reclust.studies import *
import reclust.training.monitors.trackers, reclust.interventions.adapters.clustpy, reclust.cli
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
""")
    assert "reclust" in found and not EXTRAS & set(found)


def test_public_names_are_imported_on_first_use():
    everything = {}
    exec("from reclust import *", everything)
    assert everything.keys() >= set(reclust.__all__) and everything["IDEC"] is reclust.IDEC
    settings = reclust.Settings(3, reclust.IDECObjective())
    assert pickle.loads(pickle.dumps(settings)) == settings and reclust.data.names()
    with pytest.raises(AttributeError, match="IDCE"):
        reclust.IDCE  # noqa: B018


def test_commands_that_only_read_do_not_import_torch(tmp_path):
    path, folder = str(tmp_path / "s.sqlite"), str(tmp_path)
    with Store(path) as store:
        for study, used in (("acc-table", "usps"), ("runtime", "mnist")):
            fill(store, study, seeds=2, sets=(used,))
    commands = [["--version"], ["--help"], ["fit", "--help"], ["study", "list"], ["study", "status", "--store", path], ["table", path],
                ["study", "merge", path, "--store", f"{path}.other"],
                ["study", "compact", path, "-o", f"{path}.small"], ["figure", "--list"], ["data", "list", "--folder", folder]]
    for needed, command in (("pandas", ["study", "export", "--store", path, "-o", folder]), ("shtab", ["completion", "bash"]),
                            ("matplotlib", ["figure", path, "runtime", "-o", f"{path}.svg"])):
        if find_spec(needed) is not None:
            commands.append(command)
    imported = python("""
import contextlib, io, json, sys
imported = {}
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        from reclust.cli import main
        assert main(command) == 0, command
    imported[" ".join(command[:2])] = sorted({"torch", "sklearn"} & set(sys.modules))
print(json.dumps(imported))
""", json.dumps(commands))
    assert len(imported) == len(commands) and not any(imported.values()), imported


def test_files_find_every_value_class():
    """Also in a program that imported nothing else."""
    kinds = [node.name for path in PACKAGE.rglob("*.py") for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
             and any(isinstance(one, ast.Name) and one.id == "value" for one in node.decorator_list)]
    stored = sorted(set(kinds) - {"Layout", "Limits"})
    code = "import json, sys\nfrom reclust.utils.values import kind_named\nprint(json.dumps([kind_named(n).__name__ for n in sys.argv[1:]]))"
    assert len(stored) > 40 and python(code, *stored) == stored
