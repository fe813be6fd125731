"""Threads: as many as help, which for small networks and on busy machines is one."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController

LARGE = 2**31  # multiplications of a product that all threads share without a measurement
MIN_SECONDS, ROUNDS = 1e-3, 3  # of a trial, and trials with each number of threads
GAIN = 0.75  # all threads must take at most this share of the time of one

_LOCK, _BEFORE = threading.Lock(), list[int]()
_CHOSEN: dict[tuple[int, ...], int] = {}
_controller = cache(ThreadpoolController)


@contextmanager
def helpful_threads(replicas: int, n: int, p: int, q: int) -> Iterator[None]:
    """Compute on one thread, or on all that torch may use if that helps.

    What helps is measured once in a process, on a product of matrices (replicas, n, p) and
    (replicas, p, q). The number of threads is a setting of the whole process: threads of the caller
    that use torch meanwhile are affected, and the last block to end restores the setting.
    """
    with _LOCK:
        before = torch.get_num_threads()
        most = _BEFORE[0] if _BEFORE else before
        _BEFORE.append(most)
    chosen = _choose(most, replicas, n, p, q)
    torch.set_num_threads(chosen)
    try:
        with _controller().limit(limits=chosen, user_api="blas"):
            yield
    finally:
        with _LOCK:
            _BEFORE.pop()
            torch.set_num_threads(before if _BEFORE else most)


def _choose(most: int, *shape: int) -> int:
    """Measure once for each order of magnitude, so that further fits choose the same."""
    key = (most, *(size.bit_length() for size in shape))
    replicas, n, p, q = shape
    if most == 1 or replicas * n * p * q >= LARGE:
        return most
    if key not in _CHOSEN:
        x, w = torch.ones(replicas, n, p), torch.ones(replicas, p, q)
        alone, together = 0.0, 0.0
        for _ in range(ROUNDS):  # in turn, since other programs come and go
            alone += _seconds(x, w, 1)
            together += _seconds(x, w, most)
        _CHOSEN[key] = most if together < GAIN * alone else 1
    return _CHOSEN[key]


def _seconds(x: torch.Tensor, w: torch.Tensor, threads: int) -> float:
    """Return the time of one product and what usually follows it."""
    torch.set_num_threads(threads)
    torch.bmm(x, w).relu_().sum()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < MIN_SECONDS:
        torch.bmm(x, w).relu_().sum()
        count += 1
    return (time.perf_counter() - start) / count
