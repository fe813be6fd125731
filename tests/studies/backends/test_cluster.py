"""A Ray cluster gives the same numbers, also if a node dies."""

import os
import sys
import threading
import time
from dataclasses import replace

import pytest
import torch
from studies.tiny import computed, same_table, tiny_study

from reclust.studies import RayCluster, Store


@pytest.mark.parametrize(("gpus", "nodes", "cpus"), [
    (1, [{"CPU": 16.0, "GPU": 2.0}], 8), (0.5, [{"CPU": 16.0, "GPU": 2.0}], 4), (2, [{"CPU": 16.0, "GPU": 2.0}], 16),
    (1, [{"CPU": 16.0, "GPU": 2.0}, {"CPU": 12.0, "GPU": 4.0}, {"CPU": 2.0}], 3), (1, [{"CPU": 2.0, "GPU": 4.0}], 1),
    (0, [{"CPU": 16.0, "GPU": 2.0}], torch.get_num_threads()), (1, [{"CPU": 16.0}], torch.get_num_threads()),
])
def test_every_gpu_of_a_node_has_cpus(gpus, nodes, cpus):
    gone = {"Alive": False, "Resources": {"CPU": 1.0, "GPU": 1.0}}
    assert RayCluster(gpus=gpus)._cpus_per_task([gone, *({"Alive": True, "Resources": one} for one in nodes)]) == cpus


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes on this machine, with one task at a time each."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # so that workers can import the tests
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
def test_a_node_that_dies_loses_no_run(cluster, tmp_path):
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
