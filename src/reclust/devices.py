"""Where to compute, and what fits there."""

from __future__ import annotations

import torch


def choose_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device={name!r} cannot be used here ({str(error).splitlines()[0]}). "
                         "Use 'cpu', or 'auto' for a GPU where there is one.") from error
    return device


def resident_limit(device: torch.device) -> float:
    """Bytes of samples that may be kept on the device; more than that are streamed from where they are."""
    return torch.cuda.mem_get_info(device)[0] / 2 if device.type == "cuda" else 2**29
