"""Devices: their memory and precision, torch's global random state, and the time spent."""

import math
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch

_RANDOM_STATE = threading.RLock()  # models that are fitted in parallel threads take turns
_TF32_LOCK, _TF32_BEFORE = threading.Lock(), list[str]()


def choose_device(name: str) -> torch.device:
    """Return the named device; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device).cpu()  # raises for "meta", which has no data
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device={name!r} cannot be used here ({str(error).splitlines()[0]}). "
                         "Use 'cpu', or 'auto' for a GPU if there is one.") from error
    return device


def resident_limit(device: torch.device) -> float:
    """Return how many bytes of samples may stay on the device; more are streamed."""
    return torch.cuda.mem_get_info(device)[0] / 2 if device.type == "cuda" else 2**29


def rows_at_once(device: torch.device, width: int) -> int:
    """Return how many rows to take at once: they fit a CPU's cache, or fill a GPU."""
    most, numbers = (4096, 2**23) if device.type == "cpu" else (2**16, 2**25)
    return max(1, min(most, numbers // width))


def memory_limit(device: torch.device) -> float:
    """Return how many bytes networks may use: a GPU raises when full, a CPU's process is killed."""
    known = device.type == "cpu" and "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ())
    return 0.75 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else math.inf


@dataclass(frozen=True)
class Precision:
    """Compute in "float32", "tf32", "float64" or "bf16", whose weights and losses are float32."""

    device: torch.device
    precision: str

    @classmethod
    def choose(cls, device: torch.device, wanted: str) -> "Precision":
        """Resolve "auto": bf16 on GPUs built for it, float32 elsewhere."""
        if wanted != "auto":
            return cls(device, wanted)
        # Never bf16 on a CPU, so that a seed gives the same labels on every processor.
        has_bf16 = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
        return cls(device, "bf16" if has_bf16 else "float32")

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64 if self.precision == "float64" else torch.float32

    @property
    def products(self) -> torch.dtype:
        """Type of the weights in matrix products."""
        return torch.bfloat16 if self.precision == "bf16" else self.dtype

    def network(self) -> AbstractContextManager[None]:
        if self.precision != "bf16":
            return nullcontext()
        # A cache of cast weights would outlive a step captured in a CUDA graph.
        return torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)

    def training(self) -> AbstractContextManager[None]:
        return _tf32() if self.device.type == "cuda" else nullcontext()

    def evaluation(self) -> AbstractContextManager[None]:
        return self.training() if self.precision == "tf32" else nullcontext()


@contextmanager
def _tf32() -> Iterator[None]:
    """Allow TF32 in this process; the last of several threads restores what was before."""
    with _TF32_LOCK:
        _TF32_BEFORE.append(torch.get_float32_matmul_precision())
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        with _TF32_LOCK:
            before = _TF32_BEFORE.pop()
            if not _TF32_BEFORE:
                torch.set_float32_matmul_precision(before)


@contextmanager
def fixed_seed() -> Iterator[None]:
    """Seed torch's CPU generator with 0 inside the block and restore it afterwards."""
    with _RANDOM_STATE, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        yield


@contextmanager
def forbid_global_draws(what: str, device: torch.device) -> Iterator[None]:
    """Raise a ValueError if the block draws from torch's global generators; restore them."""
    cuda = [device] if device.type == "cuda" else []

    def states() -> list[torch.Tensor]:
        return [torch.get_rng_state(), *map(torch.cuda.get_rng_state, cuda)]

    with _RANDOM_STATE, torch.random.fork_rng(devices=cuda):
        before = states()
        yield
        after = states()
    if not all(map(torch.equal, before, after)):
        raise ValueError(f"{what} draws from torch's global generator, as dropout does, so a seed "
                         "would not repeat a run: use augment= for random views, which gets keys.")


class Timer:
    """Add the time in `with timer("fit"):`, without nested parts, to `timer.seconds["fit"]`."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._device = torch.device(device)
        self._open: list[str] = []
        self._since = 0.0

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        self._charge()
        self._open.append(part)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def _charge(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now
