"""Faster repeated calls: functions compiled, or captured as a CUDA graph, where possible."""

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...utils.exceptions import first_line, warn


class Compiled:
    """A function compiled by torch, or called as it is if that fails."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self.compiled: Callable[..., Any] | None = torch.compile(function, dynamic=False)

    def __call__(self, *inputs: Any) -> Any:
        if self.compiled is not None:
            try:
                return self.compiled(*inputs)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:
                self.compiled = None
                _warn_of_slow_calls(f"The {self.name} cannot be compiled", error)
        return self.function(*inputs)


class Captured:
    """A function of fixed shapes, as one CUDA graph after ordinary calls, which do real work."""

    ORDINARY_CALLS = 3

    def __init__(self, function: Callable[..., Any], device: torch.device) -> None:
        self.function, self.calls = function, 0
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
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
        for buffer, value in zip(self.inputs, inputs, strict=True):
            buffer.copy_(value)
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
            _warn_of_slow_calls("The training step cannot be captured as a CUDA graph", error)
            return False
        self.graph = graph
        return True


def _warn_of_slow_calls(problem: str, error: Exception) -> None:
    warn(f"{problem}; training is slower, with the same result: {first_line(error)}")
