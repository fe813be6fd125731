"""What a run produced, with its settings and where it came from."""

from __future__ import annotations

import copy
import dataclasses
import os
import platform
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.inputs import Inputs
from ..objectives import Objective, State
from ..representations import Representation, build_network
from ..utils import tensor_file
from ..utils.values import NotStored, check_int, from_json, same, storable, to_json
from ..version import __version__
from .engine.replicas import Replicas
from .history import PHASES, Curve, History
from .settings import Settings


@dataclass(frozen=True)
class Model:
    """One trained replica, to be used and not trained. Samples come as the network sees them."""

    network: nn.Module
    representation: Representation
    objective: Objective
    state: State

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Model:
        state = {name: tensor.to(device, dtype if tensor.is_floating_point() else None) for name, tensor in self.state.items()}
        return replace(self, network=copy.deepcopy(self.network).to(device, dtype), state=state)

    def only(self, clusters: Tensor) -> Model:
        """The model with some of its clusters, in this order."""
        state = {name: t[clusters] if name in self.objective.per_cluster else t for name, t in self.state.items()}
        return replace(self, state=state)

    @torch.no_grad()
    def embed(self, x: Tensor) -> Tensor:
        """(B, *sample_shape) -> (B, d)."""
        return self.representation.encode(self.network, x)

    def assign(self, z: Tensor) -> Tensor:
        """(B, d) -> (B,)."""
        return self.objective.assign(self.state, z)

    def predict(self, inputs: Inputs, *, chunk: int = 1024) -> np.ndarray:
        """The cluster of each sample, (n,), computed where and in what precision the model is; inputs may be others than
        it was trained on."""
        like = next(self.network.parameters())
        labels = []
        for rows in torch.arange(inputs.n_samples, device=inputs.device).split(chunk):
            labels.append(self.assign(self.embed(inputs.normalize(inputs.take(rows)).to(like.device, like.dtype))))
        return torch.cat(labels).cpu().numpy()


@dataclass
class Result:
    """r trained replicas. parameters, buffers, state: name -> (r, ...); labels (r, n), None after pretraining alone.

    failed: replica -> (phase, epoch) at which its loss stopped being a number; its tensors are worthless.
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
        """How far a phase came; less than its schedule says if time ran out."""
        loss = self.history.get(phase, {}).get("loss")
        return 0 if loss is None else int(loss.epochs[-1]) + 1

    @property
    def groups(self) -> list[int]:
        """How many replicas trained side by side: more than one number if they did not all fit into memory."""
        return self.provenance.get("groups", [len(self)])

    @property
    def n_clusters(self) -> int:
        """How many centres each replica has; 0 after pretraining alone."""
        return self.state["centers"].shape[1] if self.state else 0

    def only(self, which: int | slice) -> Result:
        """Some replicas as a result of their own, with their history; the seconds stay those of all that trained together."""
        chosen = range(len(self))[which]
        kept = [chosen] if isinstance(chosen, int) else list(chosen)
        if not kept or kept != list(range(kept[0], kept[-1] + 1)):
            raise ValueError(f"A result is of one or several replicas next to each other, got {which!r} of {len(self)}.")
        one = slice(kept[0], kept[-1] + 1)

        def part(stacks: State) -> State:
            return {name: stack[one] for name, stack in stacks.items()}

        return replace(
            self, settings=self.settings[one], seeds=self.seeds[one],
            parameters=part(self.parameters), buffers=part(self.buffers), state=part(self.state),
            labels=None if self.labels is None else self.labels[one],
            history={phase: {column: Curve(curve.epochs, curve.values[:, one]) for column, curve in columns.items()}
                     for phase, columns in self.history.items()},
            failed={i: self.failed[replica] for i, replica in enumerate(kept) if replica in self.failed},
        )

    @property
    def living(self) -> list[int]:
        return [replica for replica in range(len(self)) if replica not in self.failed]

    def model(self, replica: int) -> Model:
        """One replica on its own, on the CPU."""
        settings = self.settings[replica]
        for own in (settings.representation, settings.objective):
            if isinstance(own, NotStored):
                raise ValueError(f"This result was trained with a {own.what} of its user's own, which no file holds: "
                                 "put the same back into its settings.")
        network = self._network("cpu").requires_grad_(False)
        self._check_shapes(network)
        stacks = self.parameters | self.buffers
        for name, tensor in (*network.named_parameters(), *network.named_buffers()):
            tensor.copy_(stacks[name][replica])
        state = {name: stack[replica].clone() for name, stack in self.state.items()}
        return Model(network, settings.representation, settings.objective, state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """One file, readable by `Result.load`; no pickle."""
        header, tensors = self.pack()
        tensor_file.write(path, "result", header, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        header, tensors = tensor_file.read(path, "result")
        with tensor_file.explain_errors(path):
            return cls.unpack(header, tensors)

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Everything as a JSON header and named tensors."""
        header = {
            "settings": pack_settings(self.settings),
            "seeds": list(self.seeds),
            "sample_shape": list(self.sample_shape),
            "seconds": self.seconds,
            "failed": [[replica, *when] for replica, when in self.failed.items()],
            "provenance": self.provenance,
        }
        tensors = {f"{group}/{name}": stack for group in ("parameters", "buffers", "state")
                   for name, stack in getattr(self, group).items()}
        if self.labels is not None:
            tensors["labels"] = torch.from_numpy(self.labels)
        return header, tensors | pack_history(self.history)

    @classmethod
    def unpack(cls, header: dict[str, Any], tensors: dict[str, Tensor]) -> Result:
        settings = list(from_json(header["settings"]))
        made = cls(
            settings=settings * len(header["seeds"]) if len(settings) == 1 else settings,
            seeds=tuple(header["seeds"]),
            sample_shape=tuple(header["sample_shape"]),
            **{group: group_of(tensors, group) for group in ("parameters", "buffers", "state")},
            labels=tensors["labels"].numpy() if "labels" in tensors else None,
            history=unpack_history(tensors),
            seconds=header["seconds"],
            failed={replica: (phase, epoch) for replica, phase, epoch in header["failed"]},
            provenance=header["provenance"],
        )
        made._check()
        return made

    def _check(self) -> None:
        """That what a file says goes together, before anything of the size that it says is made."""
        stacks = [*self.parameters.values(), *self.buffers.values(), *self.state.values()]
        shapes = [tuple(stack.shape) for stack in stacks] + ([] if self.labels is None else [self.labels.shape])
        if not self.parameters or {shape[:1] for shape in shapes} | {(len(self.settings),)} != {(len(self),)}:
            raise ValueError(f"it says that it holds {len(self)} replicas, but its tensors and settings are of others.")
        if not all(isinstance(settings, Settings) for settings in self.settings):
            raise ValueError("its settings are of another kind.")
        for side in self.sample_shape:
            check_int("each number of sample_shape", side, 1)
        if isinstance(self.settings[0].representation, NotStored):
            return
        try:
            network = self._network("meta")
        except (NotImplementedError, RuntimeError):  # a representation of one's own that cannot be built without memory
            return
        self._check_shapes(network)

    def _network(self, device: str) -> nn.Module:
        settings, dtype = self.settings[0], next(iter(self.parameters.values())).dtype
        return build_network(settings.representation, self.sample_shape, settings.n_clusters, dtype, device=device)

    def _check_shapes(self, network: nn.Module) -> None:
        tensors, stacks = dict((*network.named_parameters(), *network.named_buffers())), self.parameters | self.buffers
        if {name: t.shape for name, t in tensors.items()} != {name: stack.shape[1:] for name, stack in stacks.items()}:
            raise ValueError("The representation builds another network than was trained: weights of other names or shapes.")


def joined(one: Result, other: Result) -> Result:
    """The replicas of two runs on the same data, as if they had been one."""
    stacks: dict[str, Any] = {
        group: {name: torch.cat([stack, getattr(other, group)[name]]) for name, stack in getattr(one, group).items()}
        for group in ("parameters", "buffers", "state")
    }
    history: History = {
        phase: {column: _beside(one, other, phase, column)
                for column in {**one.history.get(phase, {}), **other.history.get(phase, {})}}
        for phase in {**one.history, **other.history}
    }
    return replace(
        one, **stacks, settings=[*one.settings, *other.settings], seeds=(*one.seeds, *other.seeds), history=history,
        labels=None if one.labels is None or other.labels is None else np.concatenate([one.labels, other.labels]),
        seconds={part: one.seconds.get(part, 0.0) + other.seconds.get(part, 0.0) for part in {**one.seconds, **other.seconds}},
        failed=one.failed | {len(one) + replica: when for replica, when in other.failed.items()},
        provenance={**other.provenance, "groups": [*one.groups, *other.groups]},
    )


def _beside(one: Result, other: Result, phase: str, column: str) -> Curve:
    """Both curves of a column on all epochs of either; what one of them lacks is False or not a number."""
    curves = [result.history.get(phase, {}).get(column) for result in (one, other)]
    given = [curve for curve in curves if curve is not None]
    epochs = np.unique(np.concatenate([curve.epochs for curve in given]))
    kind, shape = given[0].values.dtype, (len(epochs), len(one) + len(other), *given[0].values.shape[2:])
    values = np.zeros(shape, bool) if kind.kind == "b" else np.full(shape, np.nan, kind if kind.kind == "f" else np.float64)
    for curve, where in zip(curves, (slice(None, len(one)), slice(len(one), None)), strict=True):
        if curve is not None:
            values[np.searchsorted(epochs, curve.epochs), where] = curve.values
    return Curve(epochs, values)


def pack_settings(each: list[Settings]) -> Any:
    """Of all replicas as JSON, once where they are equal. Modules and functions of one's own are left out, values stay."""
    alike = all(same(settings, each[0]) for settings in each)
    return to_json([replace(one, **{field.name: storable(getattr(one, field.name)) for field in dataclasses.fields(one)})
                    for one in (each[:1] if alike else each)])


def group_of(tensors: dict[str, Tensor], group: str) -> State:
    return {name.removeprefix(f"{group}/"): tensor for name, tensor in tensors.items() if name.startswith(f"{group}/")}


def pack_history(history: History) -> dict[str, Tensor]:
    return {f"history/{phase}/{column}/{axis}": torch.from_numpy(np.ascontiguousarray(getattr(curve, axis)))
            for phase, columns in history.items() for column, curve in columns.items() for axis in ("epochs", "values")}


def unpack_history(tensors: dict[str, Tensor]) -> History:
    history: History = {}
    for name in sorted(group_of(tensors, "history")):
        curve, _, axis = name.rpartition("/")
        if axis == "epochs":
            phase, _, column = curve.partition("/")
            epochs, values = (tensors[f"history/{curve}/{axis}"].numpy() for axis in ("epochs", "values"))
            history.setdefault(phase, {})[column] = Curve(epochs, values)
    return dict(sorted(history.items(), key=lambda item: PHASES.index(item[0]) if item[0] in PHASES else len(PHASES)))


def provenance(device: torch.device) -> dict[str, Any]:
    """What a number depends on beside settings, data and seed."""
    return {
        "reclust": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        **({"gpu_memory_peak": torch.cuda.max_memory_allocated(device)} if device.type == "cuda" else {}),
    }


def stacked_result_tensors(replicas: Replicas) -> dict[str, State]:
    """The replicas' tensors on the CPU, by the names `Result` gives them."""
    return {
        group: {name: stack.detach().cpu().clone() for name, stack in getattr(replicas, group).items()}
        for group in ("parameters", "buffers", "state")
    }
