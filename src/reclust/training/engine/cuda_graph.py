"""A training step as one CUDA graph."""

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...utils.exceptions import first_line, warn


class Captured:
    """Run a function of tensors of fixed shapes as one CUDA graph, after a few ordinary calls.

    The ordinary calls do real work and let libraries and optimizers initialize. If the capture
    fails, `clean_up` is called and the function is called directly from then on. On a CPU it is
    always called directly.
    """

    ORDINARY_CALLS = 3

    def __init__(self, function: Callable[..., Any], device: torch.device,
                 clean_up: Callable[[], object]) -> None:
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
        gc.collect()  # collecting another graph during the capture would break it
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                self.output = self.function(*self.inputs)
        except RuntimeError as error:
            self.stream = None
            self.clean_up()
            warn("The training step cannot be captured as a CUDA graph and runs uncaptured, which "
                 f"is slower but gives the same result: {first_line(error)}")
            return False
        self.graph = graph
        return True

    def release(self) -> None:
        """Free the graph; the next call captures again."""
        self.graph = None
