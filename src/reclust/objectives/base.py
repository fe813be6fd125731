"""The objective protocol: four small pure functions on one model."""

from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor

State = dict[str, Tensor]  # kept between steps: 'centers' (k, d), and others by name


@runtime_checkable
class Objective(Protocol):
    """Protocol of clustering objectives.

    Training minimizes ``representation_weight * representation loss + weight * loss``. An
    objective is a frozen dataclass, decorated with `reclust.value`, and is written for one model.
    To train many models at once its methods are mapped over replicas and its float fields may be
    replaced by 0-d tensors, so they must not branch on tensor values.

    Shapes: V views of each sample, B batch size, d embedding size, k clusters.

    Examples
    --------
    >>> import torch
    >>> from reclust import DECObjective, Objective
    >>> objective = DECObjective()
    >>> isinstance(objective, Objective)
    True
    >>> state = objective.init(torch.zeros(3, 2))
    >>> objective.assign(state, torch.ones(5, 2)).shape
    torch.Size([5])
    """

    trainable: ClassVar[frozenset[str]]  # keys of the state; `update` changes the others
    per_cluster: ClassVar[frozenset[str]]  # keys of the state whose first axis is that of clusters

    @property
    def weight(self) -> float: ...

    @property
    def representation_weight(self) -> float: ...

    def init(self, centers: Tensor) -> State:
        """Make the first state from centers (k, d)."""

    def loss(self, state: State, z: Tensor) -> Tensor:
        """Compute a scalar from embeddings (V, B, d); the first view decides the assignment.

        With `train(targets=...)` the targets of the batch are a third argument.
        """

    def assign(self, state: State, z: Tensor) -> Tensor:
        """Label embeddings: (B, d) -> (B,)."""

    def update(self, state: State, z: Tensor) -> State:
        """Update the state without gradients, from embeddings (B, d), in a pass after the epoch."""


class GradientOnly:
    """Mixin for objectives without an `update`, which saves the second pass over the data."""

    def update(self, state: State, z: Tensor) -> State:
        return state


class TrainedCenters(GradientOnly):
    """Base of objectives whose state is centers that are trained, of which the nearest labels."""

    trainable: ClassVar[frozenset[str]] = frozenset({"centers"})
    per_cluster: ClassVar[frozenset[str]] = frozenset({"centers"})

    def init(self, centers: Tensor) -> State:
        return {"centers": centers.clone()}

    def assign(self, state: State, z: Tensor) -> Tensor:
        return nearest(z, state["centers"])


def has_update(objective: Objective) -> bool:
    """Tell whether the objective overrides `GradientOnly.update`."""
    return getattr(type(objective), "update", None) is not GradientOnly.update


@runtime_checkable
class RestartedObjective(Protocol):
    """Objective whose state besides the centers starts anew when an intervention moves them."""

    def restart(self, state: State) -> State: ...


class Staged:
    """Mixin for objectives of a stage after clustering, whose epochs are recorded as `stage`."""

    stage: ClassVar[str]
    relabels = False  # by `targets`, which `loss` then gets


def membership(labels: Tensor, k: int) -> Tensor:
    """One-hot encode labels as booleans: (..., B) -> (..., B, k)."""
    return labels.unsqueeze(-1) == torch.arange(k, device=labels.device)


def squared_distances(z: Tensor, centers: Tensor) -> Tensor:
    """Return squared distances by differences: (..., B, d), (..., k, d) -> (..., B, k)."""
    return (z.unsqueeze(-2) - centers.unsqueeze(-3)).pow(2).sum(-1)


def nearest(z: Tensor, centers: Tensor) -> Tensor:
    """Return the index of the nearest center: (..., B, d), (..., k, d) -> (..., B)."""
    # Exact like `squared_distances`, without holding (B, k, d) differences.
    return torch.cdist(z, centers, compute_mode="donot_use_mm_for_euclid_dist").argmin(-1)
