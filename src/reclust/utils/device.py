"""Where to compute, and what fits there."""

from __future__ import annotations

import math
import os

import torch


def choose_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device={name!r} cannot be used here ({str(error).splitlines()[0]}). "
                         "Use 'cpu', or 'auto' for a GPU where there is one.") from error
    return device


def resident_limit(device: torch.device) -> float:
    """Bytes of samples that may be kept on the device; more than that are streamed from where they are."""
    return torch.cuda.mem_get_info(device)[0] / 2 if device.type == "cuda" else 2**29


def most_memory(device: torch.device) -> float:
    """Bytes that networks may take. A GPU says by itself when it has no more; a computer may end the process instead."""
    if device.type != "cpu" or not {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(getattr(os, "sysconf_names", ())):
        return math.inf
    return 0.75 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
