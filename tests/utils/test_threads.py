"""Small products get one thread, and the caller's number comes back, also after nested and parallel blocks."""

import threading

import pytest
import torch

from reclust.utils import threads
from reclust.utils.threads import LARGE, threads_for


@pytest.fixture(autouse=True)
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("multiplications", "chosen"), [(LARGE, 4), (LARGE - 1, 1)])
def test_only_large_products_use_all_threads(multiplications, chosen):
    with threads_for(multiplications):
        assert torch.get_num_threads() == chosen
    assert torch.get_num_threads() == 4


def test_inner_blocks_may_use_more_than_outer_ones():
    with threads_for(1):
        with pytest.raises(KeyError), threads_for(LARGE):
            assert torch.get_num_threads() == 4
            raise KeyError
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 4


def test_blocks_in_parallel_restore_the_number():
    inside, done = threading.Event(), threading.Event()

    def other():
        with threads_for(1):
            inside.set()
            done.wait()

    thread = threading.Thread(target=other)
    with threads_for(1):
        thread.start()
        inside.wait()
    done.set()
    thread.join()
    assert not threads._OPEN and torch.get_num_threads() == 4


def test_blocks_that_overlap_restore_the_threads_of_blas():
    def blas():
        return [library.num_threads for library in threads._controller().lib_controllers]

    with threads._controller().limit(limits=2):
        before, first, second = blas(), threads_for(1), threads_for(1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        assert blas() == before
