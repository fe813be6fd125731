"""TensorBoard, through torch's writer."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ....utils.exceptions import require
from .base import Tracker


class TensorBoard(Tracker):
    """Write event files for `tensorboard --logdir folder`. Needs the extra `tensorboard`."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        require("tensorboard", purpose="Writing TensorBoard's event files", extra="tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(os.fspath(folder))

    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        for name, number in numbers.items():
            self._writer.add_scalar(name, number, epoch)
        self._writer.flush()

    def close(self, failed: bool = False) -> None:
        self._writer.close()
