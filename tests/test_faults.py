"""Commands that were killed, had no space or met another process end with the same files as undisturbed ones."""

import os
import random
import resource
import subprocess
import sys
import time

import numpy as np
import pytest
from studies.tiny import same_table, tiny_study
from support import blobs

import reclust
from reclust.studies import Store, write_study

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals and limits are another matter there")]
COMMANDS = {
    "fit": "fit x.csv -k 3 --algorithm idec --epochs 40 --pretrain-epochs 5 --seed 0 --device cpu --overwrite -o {}/model --report {}/fit.html",
    "predict": "predict given/model x.csv -o {}/labels.csv --report {}/predict.html",
    "run": "study run tiny.toml --store {}/s.sqlite --threads 1 --device cpu --quiet",
    "report": "report given/s.sqlite -o {}/report.html --no-figures",
    "export": "study export --store given/s.sqlite -o {}/tables",
    "figure": "figure given/s.sqlite learning-curves --study tiny -o {}/curves.pdf",
    "compact": "study compact given/s.sqlite -o {}/small.sqlite",
}


def start(name, place, folder, before=None):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "reclust", *COMMANDS[name].replace("{}", place).split()]
    return subprocess.Popen(command, cwd=folder, env=environment, preexec_fn=before, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finished(name, place, folder):
    process = start(name, place, folder)
    told, _ = process.communicate()
    assert process.returncode == 0 or "small.sqlite exists already" in told, told


def disturb(name, place, folder, chance):
    """Start a command and let something happen to it."""
    how = chance.choice(("kill", "kill", "no space", "twice", "read-only"))
    if how == "no space":
        limit = chance.choice((0, 1000, 5000, 20_000, 100_000))
        processes = [start(name, place, folder, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))]
    else:
        processes = [start(name, place, folder) for _ in range(2 if how == "twice" else 1)]
    if how == "read-only":
        time.sleep(chance.uniform(0, 6))
        os.chmod(folder / place, 0o500)
    if how == "kill" or chance.random() < 0.3:
        time.sleep(chance.uniform(0, 10))
        processes[-1].kill()
    for process in processes:
        told, _ = process.communicate()
        assert "Traceback" not in told, f"{name}, {how}: {told}"
    os.chmod(folder / place, 0o700)


def check(name, one, other):
    """Compare what a command wrote in two folders."""
    if name == "fit":
        ours, theirs = (reclust.load(place / "model") for place in (one, other))
        assert (ours.labels_ == theirs.labels_).all() and (ours.cluster_centers_ == theirs.cluster_centers_).all()
        assert sorted(os.listdir(one / "model")) == ["labels.csv", "model.reclust"]
    if name in ("fit", "predict"):
        path = "model/labels.csv" if name == "fit" else "labels.csv"
        assert (one / path).read_bytes() == (other / path).read_bytes() and (one / f"{name}.html").read_text().rstrip().endswith("</html>")
    if name == "run":
        with Store(one / "s.sqlite") as ours, Store(other / "s.sqlite") as theirs:
            assert same_table(ours, theirs, "tiny") and not ours.failures()
    for path in other.glob({"export": "tables/*", "figure": "curves.pdf", "compact": "small.sqlite"}.get(name, "nothing")):
        assert (one / path.relative_to(other)).read_bytes() == path.read_bytes()
    if name == "report":
        assert (one / "report.html").read_text().rstrip().endswith("</html>")


def survive(seconds, folder, seed):
    X, _ = blobs(n=120)
    np.savetxt(folder / "x.csv", X, delimiter=",")
    (folder / "tiny.toml").write_text(write_study(tiny_study(algorithms=("dec",), pretrained=(False,))))
    for place in ("given", "disturbed"):
        (folder / place).mkdir()
    for name in ("fit", "run", "predict", "report", "export", "figure", "compact"):
        finished(name, "given", folder)
    chance, rounds, end = random.Random(seed), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        name = chance.choice(list(COMMANDS))
        for _ in range(chance.choice((1, 1, 2))):
            disturb(name, "disturbed", folder, chance)
        finished(name, "disturbed", folder)
        check(name, folder / "disturbed", folder / "given")
        assert not list((folder / "disturbed").glob(".*.tmp"))
        rounds += 1
        if name == "run" and chance.random() < 0.5:
            for path in (folder / "disturbed").glob("s.sqlite*"):
                path.is_file() and path.unlink()
        (folder / "disturbed" / "small.sqlite").unlink(missing_ok=True)
    return rounds


def test_ten_minutes_of_faults(tmp_path):
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    assert survive(600, tmp_path, seed) > 5
