"""Fitted models as ONNX graphs: scaling, encoder and assignment in one file that needs neither torch nor Python."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..data.preparation import Preparation
from ..training.result import Model
from ..utils.files import check_writable, write_bytes


def export_onnx(model: Model, preparation: Preparation, n_features: int, path: str | os.PathLike[str]) -> None:
    """Write one graph that prepares rows (n, n_features), embeds them and assigns clusters."""
    try:
        import onnxscript
    except ImportError as error:
        raise ImportError("ONNX export needs more packages: pip install 'reclust[onnx]'") from error

    operators: Any = onnxscript.opset18

    def distances(x: Any, y: Any, p: float, compute_mode: int) -> Any:
        """Euclidean ones, which torch's exporter has no rule for: (B, d), (k, d) -> (B, k)."""
        last, middle = operators.Constant(value_ints=[-1]), operators.Constant(value_ints=[-2])
        apart = operators.Sub(operators.Unsqueeze(x, middle), y)
        return operators.Sqrt(operators.ReduceSum(operators.Mul(apart, apart), last, keepdims=0))

    check_writable(path)
    graph = _Graph(model, preparation).eval()
    example = torch.zeros(2, n_features, dtype=torch.float32)
    with _quietly(), tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "model.onnx"
        torch.onnx.export(graph, (example,), str(made), input_names=["X"], output_names=["label", "embedding"],
                          dynamic_shapes=({0: torch.export.Dim("samples")},), dynamo=True, external_data=False, verbose=False,
                          custom_translation_table={torch.ops.aten._cdist_forward.default: distances})
        write_bytes(path, made.read_bytes())


class _Graph(nn.Module):
    """Rows (B, features) in float32 -> clusters (B,) and embeddings (B, d).

    Computed in float64, as `predict` does; convolutions in float32, for ONNX runtimes know no others.
    """

    def __init__(self, model: Model, preparation: Preparation) -> None:
        super().__init__()
        self.dtype = torch.float64 if model.representation.stacks else torch.float32
        self.model = model.to("cpu", self.dtype)
        self.network, self.shape, self.lens = self.model.network, preparation.image_shape, preparation.lens
        for which in ("first", "second"):
            scaling = getattr(preparation, which)
            for name in ("shift", "scale"):
                self.register_buffer(f"{which}_{name}", torch.from_numpy(getattr(scaling, name)).to(self.dtype))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.to(self.dtype)
        if self.shape is not None:
            x = x.reshape(-1, *self.shape).movedim(-1, 1)
        x = self._scaled(x, "first")
        if self.shape is not None:
            x = self.lens(x)
        x = self._scaled(x, "second")
        z = self.model.representation.encode(self.network, x)
        return self.model.assign(z), z

    def _scaled(self, x: Tensor, which: str) -> Tensor:
        return (x - self.get_buffer(f"{which}_shift")) / self.get_buffer(f"{which}_scale")


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the exporter's notes, none of which a user can act upon."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
