"""Threads: one for small networks, which wait for each other longer than they compute."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

LARGE = 2**26  # multiplications of a product from which on threads share it

_LOCK, _OPEN = threading.Lock(), set[object]()  # blocks of all threads of the caller
_original: dict[str, Any] = {"torch": 1, "blas": None}  # before the first of them
_controller = cache(ThreadpoolController)


@contextmanager
def threads_for(multiplications: int) -> Iterator[None]:
    """Compute on one thread, or on all that torch may use if products are large.

    The choice depends on nothing else, since results depend on the number of threads. That number
    is a setting of the whole process: threads of the caller that use torch meanwhile are affected,
    and the last block to end restores the setting.
    """
    large = multiplications >= LARGE
    block = object()
    with _LOCK:
        before = torch.get_num_threads()
        if not _OPEN:
            _original.update(torch=before, blas=_controller().limit(limits=None))
        _OPEN.add(block)
    try:
        torch.set_num_threads(_original["torch"] if large else 1)
        with nullcontext() if large else _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        with _LOCK:
            _OPEN.remove(block)
            torch.set_num_threads(before if _OPEN else _original["torch"])
            if not _OPEN:
                _original["blas"].restore_original_limits()
