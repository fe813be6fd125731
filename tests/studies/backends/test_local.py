"""Processes give the same numbers, also if workers die or the study is stopped."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace

import pytest
from studies.tiny import computed, same_table, tiny_study

from reclust.studies import Conditions, Outcome, Processes, Store, Variant, run, write_study
from reclust.studies.backends import local

STUDY = tiny_study(algorithms=("dec",))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    with computed(tmp_path_factory.mktemp("alone"), STUDY) as store:
        yield store


def _workers():
    return [child.pid for child in multiprocessing.active_children()]


@pytest.mark.slow
def test_workers_that_die_are_replaced_and_the_table_is_the_same(alone, tmp_path):
    killed = []

    def kill_two():
        while len(killed) < 2:
            time.sleep(0.5)
            for pid in _workers()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill_two)
    killer.start()
    with computed(tmp_path, STUDY, Processes(2, retries=3)) as store:
        killer.join()
        assert same_table(store, alone, "tiny")
        assert len(list((tmp_path / "work" / "pretrained").iterdir())) == 1, "shared pretraining is trained once"


@pytest.mark.slow
def test_an_idle_worker_that_died_is_replaced(tmp_path):
    groups = tiny_study(algorithms=("dec",), pretrained=(False,), variants=(Variant("none"),)).groups()
    pool = local._Pool(Processes(1), Conditions(work=str(tmp_path), threads=1), groups)
    pool.idle.append(pool._start_worker())
    pool.idle[0].process.kill()
    pool.idle[0].process.join()
    try:
        pool.start_tasks()
        while not (ended := list(pool.wait())):
            pass
    finally:
        pool.close()
    assert isinstance(ended[0][1], Outcome)


@pytest.mark.slow
def test_a_group_whose_workers_always_die_fails_alone(tmp_path):
    study = tiny_study(algorithms=("dec",), pretrained=(True,), variants=(Variant("none"),))
    end = threading.Event()

    def kill_all():
        while not end.wait(0.2):
            for pid in _workers():
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_all)
    killer.start()
    try:
        with Store(tmp_path / "store") as store:
            ran = run(study, store, backend=Processes(1, retries=1), progress=False)
    finally:
        end.set()
        killer.join()
    assert ran.finished == 0 and "The worker died 2 times" in ran.failures[0].error


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes")
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    program = f"""
from dataclasses import replace
from studies.tiny import tiny_study
from reclust.studies import Conditions, Processes, Store, run
if __name__ == "__main__":
    study = replace(tiny_study(), protocol=replace(tiny_study().protocol, epochs=100_000))
    with Store({str(tmp_path / "store")!r}) as store:
        run(study, store, backend=Processes(2), progress=False, conditions=Conditions(work={str(tmp_path / "work")!r}, threads=1))
"""
    (tmp_path / "program.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    parent = subprocess.Popen([sys.executable, str(tmp_path / "program.py")], env=environment, start_new_session=True)
    try:
        deadline = time.time() + 120
        while time.time() < deadline and not list((tmp_path / "work").glob("pretrained/*.reclust")):
            time.sleep(0.5)
        time.sleep(5)
        parent.kill()
        parent.wait()
        deadline = time.time() + 60
        with pytest.raises(ProcessLookupError):
            while time.time() < deadline:
                os.killpg(parent.pid, 0)  # raises once its group is empty
                time.sleep(0.5)
        assert list((tmp_path / "work").glob("checkpoints/*.reclust"))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes to send a signal to")
def test_sigterm_for_all_processes_of_a_job_ends_with_checkpoints(tmp_path):
    study = replace(tiny_study(), protocol=replace(tiny_study().protocol, pretraining_epochs=100_000))
    (tmp_path / "tiny.toml").write_text(write_study(study))
    job = subprocess.Popen([sys.executable, "-m", "reclust", "study", "run", "tiny.toml", "--store", "s", "--device", "cpu",
                            "--on", "processes", "--threads", "1"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                           start_new_session=True)
    try:
        deadline = time.time() + 120
        while time.time() < deadline and not list((tmp_path / "s.work").glob("pretrained")):  # made when a worker begins
            time.sleep(0.5)
        time.sleep(5)
        os.killpg(job.pid, signal.SIGTERM)
        said = job.communicate(timeout=60)[1]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == 3 and said.count("Stopping after this epoch") == 1, said
    assert list((tmp_path / "s.work").glob("checkpoints/*.reclust")), "written at the end, since none was due before"
