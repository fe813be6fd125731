"""Fresh processes: no extras with `import reclust`, no torch in commands that only read, never the network, equal fingerprints."""

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
from training.test_fingerprint import CUSTOM

import reclust
from reclust.studies import Store
from reclust.training.fingerprint import fingerprint

PACKAGE = Path(reclust.__file__).parent
EXTRAS = {"matplotlib", "pandas", "pyarrow", "PIL", "h5py", "anndata", "ray", "onnx", "onnxruntime", "onnxscript", "umap", "shtab", "lightning",
          "pytorch_lightning", "tensorboard", "mlflow", "wandb", "sentence_transformers", "transformers", "triton"}


def python(code, *arguments, **variables):
    """Run code in another process and return the JSON that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "OMP_NUM_THREADS": "1", **variables}
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


KINDS = sorted({node.name for path in PACKAGE.rglob("*.py") for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
                and any(isinstance(one, ast.Name) and one.id == "value" for one in node.decorator_list)} - {"Layout", "Limits"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("fresh")
    (made / "custom_parts.py").write_text(CUSTOM)
    return made


@pytest.fixture(scope="module")
def fresh(folder):
    """What a process finds that imported nothing else and is refused the network.

    torch and scikit-learn come first, since they may import some extras.
    """
    return python("""
import json, socket, sys, warnings
def refuse(*given, **named):
    raise AssertionError("the network was asked for")
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
sys.addaudithook(lambda event, given: refuse() if event in ("socket.connect", "socket.getaddrinfo", "urllib.Request") else None)
import numpy as np, torch, sklearn.cluster
before = set(sys.modules)
from reclust.utils.values import kind_named
kinds = [kind_named(name).__name__ for name in sys.argv[2:]]
from reclust import *
from reclust.studies import *
import reclust.training.monitors.trackers, reclust.interventions.adapters.clustpy, reclust.cli
imported = sorted({name.partition(".")[0] for name in set(sys.modules) - before})
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(40, 3))
model = IDEC(2, representation=Autoencoder((4,)), pretrain_epochs=1, epochs=1, intervention=None).fit(X)
model.save(f"{sys.argv[1]}/m.reclust")
sys.path.insert(0, sys.argv[1])
from custom_parts import things
from reclust.training.fingerprint import fingerprint
print(json.dumps({"kinds": kinds, "imported": imported, "predicted": len(load(f"{sys.argv[1]}/m.reclust").predict(X)), "fingerprints": str(list(map(fingerprint, things())))}))
""", str(folder), *KINDS, PYTHONHASHSEED="123")


def test_extras_are_not_imported(fresh):
    assert "reclust" in fresh["imported"] and not EXTRAS & set(fresh["imported"])


def test_nothing_asks_the_network(fresh):
    assert fresh["predicted"] == 40


def test_equal_things_have_equal_fingerprints_in_every_process(fresh, folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    from custom_parts import things
    assert fresh["fingerprints"] == str(list(map(fingerprint, things())))


def test_files_find_every_value_class(fresh):
    """Also in a program that imported nothing else."""
    assert len(KINDS) > 40 and fresh["kinds"] == KINDS


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
