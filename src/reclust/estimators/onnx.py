"""Export to ONNX: preparation, encoder and assignment in one file."""

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..data.preparation import Preparation
from ..training.result import Model
from ..utils.exceptions import require
from ..utils.files import check_writable, write_bytes


def export_onnx(model: Model, preparation: Preparation, soft_labels: Callable[..., Tensor],
                metadata: Mapping[str, str], n_features: int, path: str | os.PathLike[str]) -> None:
    """Write one graph that prepares rows (n, n_features), embeds them and assigns clusters."""
    operators: Any = require("onnxscript", purpose="ONNX export", extra="onnx").opset18

    def distances(x: Any, y: Any, p: float, compute_mode: int) -> Any:
        """Return Euclidean distances, (B, d), (k, d) -> (B, k), which torch cannot export."""
        last, middle = operators.Constant(value_ints=[-1]), operators.Constant(value_ints=[-2])
        apart = operators.Sub(operators.Unsqueeze(x, middle), y)
        return operators.Sqrt(operators.ReduceSum(operators.Mul(apart, apart), last, keepdims=0))

    check_writable(path)
    graph = _Graph(model, preparation, soft_labels).eval()
    example = torch.zeros(2, n_features, dtype=torch.float32)
    with _quiet(), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        program: Any = torch.onnx.export(
            graph, (example,), input_names=["X"],
            output_names=["label", "embedding", "probability"],
            dynamic_shapes=({0: torch.export.Dim("samples")},), dynamo=True, verbose=False,
            custom_translation_table={torch.ops.aten._cdist_forward.default: distances})
        program.model.metadata_props.update(metadata)
        program.save(file)
        write_bytes(path, file.read_bytes())


class _Graph(nn.Module):
    """Rows (B, features) in float32 -> clusters (B,), embeddings (B, d), probabilities (B, k)."""

    def __init__(self, model: Model, preparation: Preparation, soft_labels: Callable) -> None:
        super().__init__()
        self.soft_labels = soft_labels
        # As in `predict`, but ONNX runtimes have convolutions in float32 only.
        self.dtype = torch.float64 if model.representation.stacks else torch.float32
        self.model = model.to("cpu", self.dtype)
        self.network = self.model.network
        self.image_shape, self.lens = preparation.image_shape, preparation.lens
        for which in ("first", "second"):
            for name, array in vars(getattr(preparation, which)).items():
                self.register_buffer(f"{which}_{name}", torch.from_numpy(array).to(self.dtype))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = x.to(self.dtype)
        if self.image_shape is None:
            x = self._scale(x, "first")
        else:
            images = x.reshape(-1, *self.image_shape).movedim(-1, 1)
            x = self.lens(self._scale(images, "first"))
        z = self.model.representation.encode(self.network, self._scale(x, "second"))
        return self.model.assign(z), z, self.soft_labels(self.model, z)

    def _scale(self, x: Tensor, which: str) -> Tensor:
        return (x - self.get_buffer(f"{which}_shift")) / self.get_buffer(f"{which}_scale")


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporter's messages, which users cannot act on."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
