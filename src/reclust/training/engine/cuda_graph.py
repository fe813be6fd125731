"""A training step as one CUDA graph."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...utils.exceptions import first_line, warn


class Captured:
    """A function of tensors that runs as one CUDA graph after a few ordinary calls; shapes must stay the same.

    The ordinary calls do real work and let libraries and optimizers set themselves up. If the capture fails, what it left
    is cleaned up, and the function goes on being called the ordinary way, with one warning. A CPU has nothing to capture.
    """

    ORDINARY_CALLS = 3

    def __init__(self, function: Callable[..., Any], device: torch.device, clean_up: Callable[[], object]) -> None:
        self.function, self.clean_up = function, clean_up
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, *inputs: Tensor) -> Any:
        if self.stream is None:
            return self.function(*inputs)
        if self.calls < self.ORDINARY_CALLS:
            self.calls += 1
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                output = self.function(*inputs)
            torch.cuda.current_stream().wait_stream(self.stream)
            return output
        if self.graph is None and not self._capture(inputs, self.stream):
            return self.function(*inputs)
        for own, given in zip(self.inputs, inputs, strict=True):
            own.copy_(given)
        assert self.graph is not None
        self.graph.replay()
        return self.output

    def _capture(self, inputs: tuple[Tensor, ...], stream: torch.cuda.Stream) -> bool:
        self.inputs = [tensor.clone() for tensor in inputs]
        gc.collect()  # a forgotten graph that is collected during a capture would break it
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                self.output = self.function(*self.inputs)
        except RuntimeError as error:
            self.stream = None
            self.clean_up()
            warn(f"The training step cannot be captured as a CUDA graph and runs step by step, which is slower "
                 f"but equally right: {first_line(error)}")
            return False
        self.graph = graph
        return True

    def release(self) -> None:
        """Forget the graph; the next call captures anew."""
        self.graph = None
