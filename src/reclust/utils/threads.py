"""Threads: one for small networks, which wait for each other longer than they compute."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache

import torch
from threadpoolctl import ThreadpoolController

LARGE = 2**26  # multiplications of a product from which on threads share it

_LOCK, _BEFORE = threading.Lock(), list[int]()
_controller = cache(ThreadpoolController)


@contextmanager
def threads_for(multiplications: int) -> Iterator[None]:
    """Compute on one thread, or on all that torch may use if products are large.

    The choice depends on nothing else, since results depend on the number of threads. That number
    is a setting of the whole process: threads of the caller that use torch meanwhile are affected,
    and the last block to end restores the setting.
    """
    large = multiplications >= LARGE
    with _LOCK:
        before = torch.get_num_threads()
        most = _BEFORE[0] if _BEFORE else before
        _BEFORE.append(most)
    torch.set_num_threads(most if large else 1)
    try:
        with nullcontext() if large else _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        with _LOCK:
            _BEFORE.pop()
            torch.set_num_threads(before if _BEFORE else most)
