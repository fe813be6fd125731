"""torch's global random state belongs to the caller."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from reclust.utils.device import choose_device, fixed_seed, forbid_global_draws

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def unchanged():
    before = torch.get_rng_state()
    yield
    assert torch.equal(before, torch.get_rng_state())


def test_a_fixed_seed_gives_the_same_numbers_each_time():
    drawn = []
    for _ in range(2):
        with fixed_seed():
            drawn.append(torch.rand(3))
    assert torch.equal(*drawn)


def test_threads_take_turns():
    def work():
        for _ in range(50):
            with fixed_seed():
                torch.rand(100)
            with forbid_global_draws("The part", CPU):
                torch.zeros(100)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result()


def test_draws_are_refused():
    with pytest.raises(ValueError, match="The part draws from torch's global generator"), forbid_global_draws("The part", CPU):
        torch.rand(3)
    with pytest.raises(RuntimeError, match="another error"), forbid_global_draws("The part", CPU):
        torch.rand(3)
        raise RuntimeError("another error")


def test_other_generators_and_restored_states_are_no_draws():
    with forbid_global_draws("The part", CPU):
        torch.rand(3, generator=torch.Generator().manual_seed(0))
        with torch.random.fork_rng(devices=[]):
            torch.rand(3)


def test_a_device_without_data_is_refused():
    with pytest.raises(ValueError, match="device='meta' cannot be used here"):
        choose_device("meta")
