"""Trained replicas, with their settings and provenance."""

import copy
import dataclasses
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..data.inputs import Inputs
from ..objectives import Objective, State
from ..representations import Representation, build_network
from ..utils import tensor_file
from ..utils.values import NotStored, check_ints, from_json, same, storable, to_json
from ..utils.version import __version__
from .history import PHASES, Curve, History
from .settings import Settings

KINDS = ("parameters", "buffers", "state")  # of tensors in a result: name -> (r, ...) each


@dataclass(frozen=True)
class Model:
    """One trained replica for inference. Samples are passed as the network sees them."""

    network: nn.Module
    representation: Representation
    objective: Objective
    state: State

    def to(self, device: torch.device | str, dtype: torch.dtype) -> "Model":
        state = {name: tensor.to(device, dtype if tensor.is_floating_point() else None)
                 for name, tensor in self.state.items()}
        return replace(self, network=copy.deepcopy(self.network).to(device, dtype), state=state)

    def only(self, clusters: Tensor) -> "Model":
        state = {name: tensor[clusters] if name in self.objective.per_cluster else tensor
                 for name, tensor in self.state.items()}
        return replace(self, state=state)

    @torch.no_grad()
    def embed(self, x: Tensor) -> Tensor:
        """Embed samples, (B, *sample_shape) -> (B, d)."""
        return self.representation.encode(self.network, x)

    def assign(self, z: Tensor) -> Tensor:
        """(B, d) -> (B,)."""
        return self.objective.assign(self.state, z)

    def predict(self, inputs: Inputs, *, chunk: int = 1024) -> np.ndarray:
        """Assign each sample to a cluster, (n,), on the model's device and in its precision."""
        like = next(self.network.parameters())
        labels = []
        for rows in torch.arange(inputs.n_samples, device=inputs.device).split(chunk):
            x = inputs.normalize(inputs.take(rows)).to(like.device, like.dtype)
            labels.append(self.assign(self.embed(x)))
        return torch.cat(labels).cpu().numpy()


class _CallLimit(TorchFunctionMode):
    """Raise if building a network takes far more calls of torch than its tensors need."""

    def __init__(self, n_tensors: int) -> None:
        super().__init__()
        self._left = 5000 + 100 * min(n_tensors, 1000)  # about 20 are usual

    def __torch_function__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        self._left -= 1
        # The end of a no_grad block must not fail, or gradients would stay off.
        if self._left < 0 and function is not torch._C._set_grad_enabled:
            raise ValueError("The settings describe a larger network than the trained one.")
        return function(*args, **(kwargs or {}))


@dataclass
class Result:
    """Trained replicas of one run, as `train` returns them.

    Parameters
    ----------
    settings, seeds, sample_shape : list of Settings, tuple of int and tuple of int
        Settings and seed of each replica, and the shape of one sample.
    parameters, buffers, state : dict of str to Tensor of shape (n_replicas, ...)
        Tensors of the networks and of the objectives, such as the centers.
    labels : ndarray of shape (n_replicas, n_samples) or None
        Final labels; None after pretraining alone.
    history : dict of str to dict of str to Curve
        Measurements by phase and column.
    seconds, provenance : dict
        Time spent by phase and part; versions and hardware.
    failed : dict of int to (str, int)
        Phase and epoch at which the loss of a replica stopped being finite.

    Examples
    --------
    >>> import numpy as np
    >>> from reclust import Autoencoder, IDECObjective, Schedule, Settings, train
    >>> X = np.random.default_rng(0).normal(size=(60, 5)).astype("float32")
    >>> settings = Settings(3, IDECObjective(), Autoencoder((8,)), pretraining=Schedule(1),
    ...                     clustering=Schedule(2))
    >>> result = train(X, settings, seeds=[0, 1])
    >>> result.labels.shape, result.only(1).seeds
    ((2, 60), (1,))
    """

    settings: list[Settings]
    seeds: tuple[int, ...]
    sample_shape: tuple[int, ...]
    parameters: State
    buffers: State
    state: State
    labels: np.ndarray | None
    history: History
    seconds: dict[str, float]
    failed: dict[int, tuple[str, int]] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.seeds)

    def trained_epochs(self, phase: str) -> int:
        """Return the epochs trained, fewer than scheduled if the time budget ran out."""
        loss = self.history.get(phase, {}).get("loss")
        return 0 if loss is None else int(loss.epochs[-1]) + 1

    @property
    def groups(self) -> list[int]:
        """Sizes of the groups that trained side by side; several if memory was short."""
        return self.provenance.get("groups", [len(self)])

    @property
    def n_clusters(self) -> int:
        """Number of centers of each replica; 0 after pretraining alone."""
        return self.state["centers"].shape[1] if self.state else 0

    @property
    def living(self) -> list[int]:
        """Replicas that did not fail."""
        return [replica for replica in range(len(self)) if replica not in self.failed]

    def only(self, which: int | slice | list[int]) -> "Result":
        """Select some replicas. `seconds` stay those of all replicas that trained together."""
        rows = np.atleast_1d(np.arange(len(self))[which])
        stacks: dict[str, Any] = {kind: {
            name: stack[rows] for name, stack in getattr(self, kind).items()} for kind in KINDS}
        return replace(
            self, **stacks, settings=[self.settings[i] for i in rows],
            seeds=tuple(self.seeds[i] for i in rows),
            labels=None if self.labels is None else self.labels[rows],
            history={phase: {column: Curve(curve.epochs, curve.values[:, rows])
                             for column, curve in columns.items()}
                     for phase, columns in self.history.items()},
            failed={i: self.failed[old] for i, old in enumerate(rows) if old in self.failed})

    def model(self, replica: int) -> Model:
        """Extract one replica, on the CPU."""
        settings = self.settings[replica]
        for part in (settings.representation, settings.objective):
            if isinstance(part, NotStored):
                raise ValueError(f"A custom {part.what} is not saved: put it into the settings.")
        network = self._network("cpu").requires_grad_(False)
        self._check_shapes(network)
        for name, tensor in (*network.named_parameters(), *network.named_buffers()):
            tensor.copy_((self.parameters | self.buffers)[name][replica])
        state = {name: stack[replica].clone() for name, stack in self.state.items()}
        return Model(network, settings.representation, settings.objective, state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file without pickle, to be read by `Result.load`."""
        tensor_file.write(path, "result", *self.pack())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Result":
        """Read a file written by `save`."""
        header, tensors = tensor_file.read(path, "result")
        with tensor_file.explain_errors(path):
            return cls.unpack(header, tensors)

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        header = {
            "settings": pack_settings(self.settings), "seeds": list(self.seeds),
            "sample_shape": list(self.sample_shape), "seconds": self.seconds,
            "failed": [[replica, *when] for replica, when in self.failed.items()],
            "provenance": self.provenance}
        tensors = {f"{kind}/{name}": stack for kind in KINDS
                   for name, stack in getattr(self, kind).items()}
        if self.labels is not None:
            tensors["labels"] = torch.from_numpy(self.labels)
        return header, tensors | pack_history(self.history)

    @classmethod
    def unpack(cls, header: dict[str, Any], tensors: dict[str, Tensor]) -> "Result":
        settings = list(from_json(header["settings"]))
        result = cls(
            settings=settings * len(header["seeds"]) if len(settings) == 1 else settings,
            seeds=tuple(header["seeds"]),
            sample_shape=check_ints("sample_shape", header["sample_shape"], 1),
            **{kind: with_prefix(tensors, kind) for kind in KINDS},
            labels=tensors["labels"].numpy() if "labels" in tensors else None,
            history=unpack_history(tensors), provenance=dict(header["provenance"]),
            seconds={part: float(spent) for part, spent in header["seconds"].items()},
            failed={replica: (phase, epoch) for replica, phase, epoch in header["failed"]})
        if not isinstance(result.settings[0].representation, NotStored):
            # A custom representation perhaps cannot be built on the meta device.
            with suppress(NotImplementedError, RuntimeError), _CallLimit(len(tensors)):
                result._check_shapes(result._network("meta"))
        return result

    def _network(self, device: str) -> nn.Module:
        settings, dtype = self.settings[0], next(iter(self.parameters.values())).dtype
        return build_network(settings.representation, self.sample_shape, settings.n_clusters, dtype,
                             device=device)

    def _check_shapes(self, network: nn.Module) -> None:
        tensors = dict((*network.named_parameters(), *network.named_buffers()))
        needed = {name: (len(self), *tensor.shape) for name, tensor in tensors.items()}
        stacks = self.parameters | self.buffers
        stacked = all(stack.shape[:1] == (len(self),) for stack in self.state.values())
        if not stacked or needed != {name: tuple(stack.shape) for name, stack in stacks.items()}:
            raise ValueError("The names or shapes of its weights differ from the trained ones.")


def concatenate(first: Result, second: Result) -> Result:
    """Combine the replicas of two runs on the same data."""
    stacks: dict[str, Any] = {
        kind: {name: torch.cat([stack, getattr(second, kind)[name]])
               for name, stack in getattr(first, kind).items()} for kind in KINDS}
    history: History = {
        phase: {column: _concatenate_curves(first, second, phase, column)
                for column in {**first.history.get(phase, {}), **second.history.get(phase, {})}}
        for phase in {**first.history, **second.history}}
    missing = first.labels is None or second.labels is None
    return replace(
        first, **stacks, settings=[*first.settings, *second.settings],
        seeds=(*first.seeds, *second.seeds), history=history,
        labels=None if missing else np.concatenate([first.labels, second.labels]),
        seconds={part: first.seconds.get(part, 0.0) + second.seconds.get(part, 0.0)
                 for part in {**first.seconds, **second.seconds}},
        failed=first.failed | {len(first) + i: when for i, when in second.failed.items()},
        provenance={**second.provenance, "groups": [*first.groups, *second.groups]})


def _concatenate_curves(first: Result, second: Result, phase: str, column: str) -> Curve:
    """Put both curves on the union of their epochs; gaps become False or NaN."""
    curves = [result.history.get(phase, {}).get(column) for result in (first, second)]
    like = next(curve.values for curve in curves if curve is not None)
    epochs = np.unique(np.concatenate([curve.epochs for curve in curves if curve is not None]))
    shape = (len(epochs), len(first) + len(second), *like.shape[2:])
    kind = like.dtype.kind
    values = np.full(shape, False if kind == "b" else np.nan,
                     like.dtype if kind in "bf" else np.float64)
    for curve, where in zip(curves, (slice(len(first)), slice(len(first), None)), strict=True):
        if curve is not None:
            values[np.searchsorted(epochs, curve.epochs), where] = curve.values
    return Curve(epochs, values)


def pack_settings(settings: list[Settings]) -> Any:
    """Convert to JSON, once if all replicas agree; custom modules and functions are left out."""
    alike = all(same(item, settings[0]) for item in settings)
    return to_json([replace(item, **{part.name: storable(getattr(item, part.name))
                                     for part in dataclasses.fields(item)})
                    for item in (settings[:1] if alike else settings)])


def with_prefix(tensors: dict[str, Tensor], prefix: str) -> State:
    """Select the tensors whose name starts with `prefix/`, and drop that from their names."""
    return {name.removeprefix(f"{prefix}/"): tensor for name, tensor in tensors.items()
            if name.startswith(f"{prefix}/")}


def pack_history(history: History) -> dict[str, Tensor]:
    return {f"history/{phase}/{column}/{axis}": torch.from_numpy(np.ascontiguousarray(array))
            for phase, columns in history.items() for column, curve in columns.items()
            for axis, array in vars(curve).items()}


def unpack_history(tensors: dict[str, Tensor]) -> History:
    arrays = {name: tensor.numpy() for name, tensor in with_prefix(tensors, "history").items()}
    history: History = {}
    for name in sorted(arrays):
        curve, _, axis = name.rpartition("/")
        if axis == "epochs":
            phase, _, column = curve.partition("/")
            history.setdefault(phase, {})[column] = Curve(arrays[name], arrays[f"{curve}/values"])
    position = {phase: i for i, phase in enumerate(PHASES)}  # custom stages come last
    return dict(sorted(history.items(), key=lambda item: position.get(item[0], len(PHASES))))


def provenance(device: torch.device) -> dict[str, Any]:
    """Versions and hardware that a result depends on, besides settings, data and seed."""
    facts: dict[str, Any] = {
        "reclust": __version__, "torch": torch.__version__, "numpy": np.__version__,
        "python": platform.python_version(), "device": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads()}
    if device.type == "cuda":
        facts |= {"device": torch.cuda.get_device_name(device),
                  "gpu_memory_peak": torch.cuda.max_memory_allocated(device)}
    return facts
