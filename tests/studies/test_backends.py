"""Wherever groups are computed, the numbers are the same; workers and nodes may die on the way."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace

import pytest
import torch

from reclust.studies import (
    Conditions,
    Outcome,
    Processes,
    RayCluster,
    Store,
    Variant,
    named,
    run,
    write_study,
)
from reclust.studies.backends import processes
from studies.tiny import same_table, tiny_study


def computed(path, study, backend=None, **conditions):
    """The store of a study that was run there."""
    store = Store(path / "store")
    given = {} if backend is None else {"backend": backend}
    ran = run(study, store, conditions=Conditions(work=str(path / "work"), threads=1, **conditions), progress=False, **given)
    assert (ran.waiting, ran.failures) == (0, [])
    return store


@pytest.fixture
def alone(tmp_path):
    (tmp_path / "alone").mkdir()
    with computed(tmp_path / "alone", tiny_study()) as store:
        yield store


@pytest.mark.slow
def test_processes_give_the_same_table(alone, tmp_path):
    with computed(tmp_path, tiny_study(), Processes(2)) as store:
        assert same_table(store, alone, "tiny")
        assert len(list((tmp_path / "work" / "pretrained").iterdir())) == 1, "shared pretraining is trained once"


def _workers():
    """Processes that this one started for groups."""
    import multiprocessing

    return [child.pid for child in multiprocessing.active_children()]


@pytest.mark.slow
def test_workers_that_die_are_replaced(alone, tmp_path):
    killed = []

    def kill_three():
        while len(killed) < 3:
            time.sleep(0.5)
            for pid in _workers()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill_three)
    killer.start()
    with computed(tmp_path, tiny_study(), Processes(2, retries=3)) as store:
        killer.join()
        assert same_table(store, alone, "tiny")


@pytest.mark.slow
def test_an_idle_worker_that_died_is_replaced(tmp_path):
    groups = tiny_study(algorithms=("dec",), pretrained=(False,), variants=(Variant("none"),)).groups()
    pool = processes._Pool(Processes(1), Conditions(work=str(tmp_path), threads=1), groups)
    pool.idle.append(pool._hire())
    pool.idle[0].process.kill()
    pool.idle[0].process.join()
    try:
        pool.start_what_can()
        while not (ended := list(pool.ended())):
            pass
    finally:
        pool.end()
    assert isinstance(ended[0][1], Outcome)


@pytest.mark.slow
def test_a_group_whose_workers_always_die_fails_alone(tmp_path, monkeypatch):
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
@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes to look for")
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    """They go on as orphans otherwise, and what they finish is lost."""
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
                os.killpg(parent.pid, 0)  # raises once nobody of its group is left
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
    job = subprocess.Popen([sys.executable, "-m", "reclust.cli", "study", "run", "tiny.toml", "--store", "s", "--device", "cpu",
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
    assert list((tmp_path / "s.work").glob("checkpoints/*.reclust")), "which is written at the end, none being due before"


@pytest.mark.slow
def test_processes_stop_in_time(alone, tmp_path):
    study = replace(tiny_study(), protocol=replace(tiny_study().protocol, epochs=100_000))
    with Store(tmp_path / "store") as store:
        begun = time.time()
        ran = run(study, store, backend=Processes(2), progress=False,
                  conditions=Conditions(work=str(tmp_path / "work"), until=begun + 30, threads=1))
        assert ran.finished == 0 and ran.waiting == len(study.planned()) and ran.failures == []
        assert time.time() - begun < 90
        assert len(list((tmp_path / "work" / "checkpoints").iterdir())) > 0


@pytest.mark.parametrize(("gpus", "nodes", "cpus"), [
    (1, [{"CPU": 16.0, "GPU": 2.0}], 8), (0.5, [{"CPU": 16.0, "GPU": 2.0}], 4), (2, [{"CPU": 16.0, "GPU": 2.0}], 16),
    (1, [{"CPU": 16.0, "GPU": 2.0}, {"CPU": 12.0, "GPU": 4.0}, {"CPU": 2.0}], 3), (1, [{"CPU": 2.0, "GPU": 4.0}], 1),
    (0, [{"CPU": 16.0, "GPU": 2.0}], torch.get_num_threads()), (1, [{"CPU": 16.0}], torch.get_num_threads()),
])
def test_every_gpu_of_a_node_finds_cpus_left(gpus, nodes, cpus):
    gone = {"Alive": False, "Resources": {"CPU": 1.0, "GPU": 1.0}}
    assert RayCluster(gpus=gpus)._share([gone, *({"Alive": True, "Resources": one} for one in nodes)]) == cpus


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes on this machine, one task at a time each."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # workers are to import what this process imports
    ray = pytest.importorskip("ray", reason="needs ray: pip install 'reclust[cluster]'")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False,
                                                         "object_store_memory": 100 * 2**20})
    made.second = made.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.mark.slow
def test_ray_gives_the_same_table(alone, cluster, tmp_path):
    with computed(tmp_path, tiny_study(), RayCluster(cluster.address, cpus=1)) as store:
        assert same_table(store, alone, "tiny")


@pytest.mark.slow
def test_a_node_that_dies_takes_no_run_along(cluster, tmp_path):
    """The second of two nodes is killed as soon as the first group is finished."""
    study = tiny_study(protocol=replace(tiny_study().protocol, epochs=40))
    for part in ("alone", "spread"):
        (tmp_path / part).mkdir()
    killed_after = []

    def kill():
        while not killed_after:
            time.sleep(0.1)
            with Store(tmp_path / "spread" / "store") as store:
                finished = sum(status.finished for status in store.status())
            if finished:
                cluster.remove_node(cluster.second, allow_graceful=False)
                killed_after.append(finished)

    with computed(tmp_path / "alone", study) as alone:
        killer = threading.Thread(target=kill)
        killer.start()
        with computed(tmp_path / "spread", study, RayCluster(cluster.address, cpus=1)) as store:
            killer.join()
            assert 0 < killed_after[0] < len(study.planned())
            assert same_table(store, alone, "tiny")


@pytest.mark.slow
def test_the_small_main_table_through_ray(cluster, tmp_path):
    for part in ("alone", "spread"):
        (tmp_path / part).mkdir()
    study = named("acc-table-mini")
    with computed(tmp_path / "alone", study) as alone, \
            computed(tmp_path / "spread", study, RayCluster(cluster.address, cpus=1)) as store:
        assert same_table(store, alone, study.name)
