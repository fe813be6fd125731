"""Threads are chosen by what a measurement says, and the caller's number comes back, also after nested and parallel blocks."""

import threading

import pytest
import torch

from reclust.utils import threads
from reclust.utils.threads import helpful_threads


@pytest.fixture
def clock(monkeypatch):
    """Seconds that products take with 1 and with 4 threads; the number of measurements."""
    times, measured = {1: 1.0, 4: 0.3}, []
    monkeypatch.setattr(threads, "_seconds", lambda x, w, count: measured.append(count) or times[count])
    monkeypatch.setattr(threads, "_CHOSEN", {})
    torch.set_num_threads(4)
    return times, measured


@pytest.mark.parametrize(("together", "chosen"), [(0.3, 4), (0.9, 1), (20.0, 1)])
def test_threads_must_pay(clock, together, chosen):
    clock[0][4] = together
    for _ in range(2):
        with helpful_threads(1, 100, 10, 5):
            assert torch.get_num_threads() == chosen
        assert torch.get_num_threads() == 4
    assert clock[1] == [1, 4] * threads.ROUNDS  # measured once


def test_large_products_and_single_threads_are_not_measured(clock):
    with helpful_threads(8, 1000, 1000, 1000):
        assert torch.get_num_threads() == 4
    torch.set_num_threads(1)
    with helpful_threads(1, 100, 10, 5):
        assert torch.get_num_threads() == 1
    assert clock[1] == []


def test_inner_blocks_may_use_more_than_outer_ones(clock):
    clock[0][4] = 5.0
    with helpful_threads(1, 10, 10, 5):
        clock[0][4] = 0.1
        with pytest.raises(KeyError), helpful_threads(1, 1000, 100, 5):
            assert torch.get_num_threads() == 4
            raise KeyError
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 4


def test_blocks_in_parallel_restore_the_number(clock):
    clock[0][4] = 5.0
    inside, done = threading.Event(), threading.Event()

    def other():
        with helpful_threads(1, 10, 10, 5):
            inside.set()
            done.wait()

    thread = threading.Thread(target=other)
    with helpful_threads(1, 10, 10, 5):
        thread.start()
        inside.wait()
    done.set()
    thread.join()
    assert not threads._BEFORE


def test_a_measurement_takes_milliseconds():
    assert threads._seconds(torch.ones(1, 20, 5), torch.ones(1, 5, 3), 1) > 0
