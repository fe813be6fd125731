"""Settings of a run, as values."""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

from ..data.augmentation.affine import Augmentation
from ..interventions import Intervention, Recluster, Step
from ..objectives import Objective
from ..representations import Autoencoder, Representation
from ..utils.choices import PrecisionName
from ..utils.values import NotStored, choice, expanded, integer, number, same, value

View = Literal["clean", "augmented", "neighbor"] | Augmentation
LastBatch = Literal["dropped", "kept", "kept unless augmented"]
Encoding = Literal["together", "together and apart"]


@value
class Schedule:
    """Optimization settings of one training phase.

    Parameters
    ----------
    epochs : int
        Passes over the data.
    lr, batch_size : float and int, default=1e-3, 256
        Learning rate of Adam, and samples per gradient step.
    views : tuple of {"clean", "augmented", "neighbor"} or callables
        Views of each sample, by default ("clean", "augmented"): unchanged, by the settings'
        augmentation if there is one, one of its nearest neighbors, augmented likewise, or by the
        callable. The first view decides the assignment.
    clip_norm : float or None, default=500
        Largest l2 norm of the gradient of a replica's network. Centers are not clipped.
    warmup_delay, warmup_epochs : int, default=0, 0
        Epochs at 1 % of the learning rate, and those over which it then rises linearly.
    weight_decay : float, default=0
        Decoupled, as in AdamW, on the parameters that the representation names.
    network : {"trained", "frozen"}, default="trained"
        "frozen" keeps weights and BatchNorm statistics and trains the objective's state only.
    first_view : {"learns", "decides"}, default="learns"
        "decides" encodes the first view separately and without gradients.
    encoding : {"together", "together and apart"}, default="together"
        "together and apart" encodes all views in one pass, which only moves the running statistics
        of BatchNorm, and then each view alone, with its own statistics.
    decay : {"none", "cosine"}, default="none"
        "cosine" lowers the learning rate to 5 % in the course of the phase.
    neighbors, neighbors_in : int and {"samples", "embedding"}, default=10, "samples"
        Number of nearest neighbors that "neighbor" chooses from, and their space: the samples, or
        their embedding at the start of the phase, by cosine.
    last_batch : {"dropped", "kept", "kept unless augmented"}, default="dropped"
        What happens to the samples that do not fill a batch.
    centers_view : {"clean", "first"}, default="clean"
        Samples by which an objective without gradients moves its centers: unchanged, or seen as in
        the first of the views.

    Examples
    --------
    >>> from reclust import Schedule
    >>> Schedule(epochs=10, lr=0.5, warmup_epochs=5).learning_rate(epoch=7)
    0.5
    """

    epochs: int = integer(least=0)
    lr: float = number(default=1e-3, above=0)
    batch_size: int = integer(default=256, least=1)
    views: tuple[View, ...] = ("clean", "augmented")
    clip_norm: float | None = number(default=500.0, above=0, optional=True)
    warmup_epochs: int = integer(default=0, least=0)
    weight_decay: float = number(default=0.0, least=0)
    network: Literal["trained", "frozen"] = choice("trained", "frozen", default="trained")
    first_view: Literal["learns", "decides"] = choice("learns", "decides", default="learns")
    decay: Literal["none", "cosine"] = choice("none", "cosine", default="none")
    neighbors: int = integer(default=10, least=1)
    warmup_delay: int = integer(default=0, least=0)
    last_batch: LastBatch = choice(*get_args(LastBatch), default="dropped")
    encoding: Encoding = choice(*get_args(Encoding), default="together")
    centers_view: Literal["clean", "first"] = choice("clean", "first", default="clean")
    neighbors_in: Literal["samples", "embedding"] = choice(
        "samples", "embedding", default="samples")

    def __post_init__(self) -> None:
        names = ("clean", "augmented", "neighbor")
        known = [view in names or callable(view) for view in self.views]
        if not isinstance(self.views, tuple) or not known or not all(known):
            raise ValueError(f"views must be a tuple of {', '.join(map(repr, names))} and "
                             f"augmentations, got {self.views!r}.")

    def learning_rate(self, epoch: int) -> float:
        warm = max(0, epoch - self.warmup_delay)
        if warm < self.warmup_epochs:
            return self.lr * (0.01 + 0.99 * warm / self.warmup_epochs)
        if self.decay == "none":
            return self.lr
        return self.lr * (0.525 + 0.475 * math.cos(math.pi * epoch / self.epochs))


PRETRAINING = Schedule(epochs=50, views=("clean",))
CLUSTERING = Schedule(epochs=100)


@value
class Settings:
    """Everything that decides what a run computes, except its data and seed.

    Parameters
    ----------
    n_clusters, objective : int and Objective
        Number of clusters, and the clustering loss.
    representation : Representation, default=Autoencoder()
        The network and the loss it is pretrained with.
    intervention : Intervention or None, default=None
        Changes made between epochs, such as `BRB()`.
    pretraining : Schedule or None
        Training on the representation's loss alone; None starts from scratch.
    clustering : Schedule or None
        None stops after pretraining, so that several runs can start from its result.
    first_centers : Recluster or None
        Finds the first centers after pretraining. None keeps those that `train` gets as `start`.
    augment : callable or None, default=None
        Augmentation of the "augmented" views: (x, keys) -> x.
    first_mode : {"eval", "train"}, default="eval"
        Mode of the network when it embeds samples for the first centers: in "train" BatchNorm takes
        its statistics from batches in the order of the samples.

    Examples
    --------
    >>> from reclust import BRB, IDECObjective, Schedule, Settings
    >>> settings = Settings(10, IDECObjective(), intervention=BRB(20), clustering=Schedule(60))
    >>> settings.clustering.epochs
    60
    """

    n_clusters: int = integer(least=1)
    objective: Objective
    representation: Representation = Autoencoder()
    intervention: Intervention | None = None
    pretraining: Schedule | None = PRETRAINING
    clustering: Schedule | None = CLUSTERING
    first_centers: Recluster | None = Recluster(subsample=None)
    augment: Augmentation | None = None
    first_mode: Literal["eval", "train"] = choice("eval", "train", default="eval")

    def __post_init__(self) -> None:
        kinds: dict[str, Any] = {
            "objective": Objective, "representation": Representation, "intervention": Intervention,
            "pretraining": Schedule, "clustering": Schedule, "first_centers": Step,
            "augment": Callable}
        for name, kind in kinds.items():
            if getattr(self, name) is not None or name in ("objective", "representation"):
                check_part(name, getattr(self, name), kind)

    @property
    def augmentations(self) -> list[Augmentation]:
        schedules = filter(None, (self.pretraining, self.clustering))
        views = [self.augment, *(view for schedule in schedules for view in schedule.views)]
        return [view for view in views if view is not None and not isinstance(view, str)]


def check_part(name: str, part: Any, kind: Any) -> None:
    """Raise unless `part` is an instance of this class, union or protocol."""
    if isinstance(part, type) or not isinstance(part, (kind, NotStored)):
        hint = f": write {part.__name__}()" if hasattr(part, "__name__") else ""
        needed = getattr(kind, "__name__", kind)
        raise ValueError(f"{name} must be an instance of {needed}, got {part!r}{hint}.")


@value
class Execution:
    """How a run is executed: device, precision, parallelism.

    Parameters
    ----------
    device : str, default="auto"
        A torch device; "auto" uses a GPU if there is one.
    precision : {"auto", "float32", "float64", "bf16", "tf32"}, default="float32"
        "bf16" computes products in bfloat16 and keeps the rest in float32; "auto" is "bf16" on
        GPUs that support it and "float32" elsewhere. On a GPU "float32" trains with TF32 products
        and evaluates with full ones; "tf32" uses TF32 in both.
    executor : {"auto", "plain", "vmap"}, default="auto"
        "plain" loops over replicas, "vmap" stacks them; "auto" stacks several small networks.
    compile : {"auto", "always", "never"}, default="auto"
        Use `torch.compile` for image augmentations and networks; "auto" in long phases on a GPU.
    time_budget : float or None, default=None
        Seconds after which training stops between two epochs and returns what it has.

    Examples
    --------
    >>> from reclust import Execution
    >>> Execution(device="cpu", precision="float64").executor
    'auto'
    """

    device: str = "auto"
    precision: PrecisionName = choice(*get_args(PrecisionName), default="float32")
    executor: Literal["auto", "plain", "vmap"] = choice("auto", "plain", "vmap", default="auto")
    compile: Literal["auto", "always", "never"] = choice("auto", "always", "never", default="auto")
    time_budget: float | None = number(default=None, above=0, optional=True)

    def with_time_left(self, started: float) -> "Execution":
        """Subtract the time since `started`, a `time.monotonic()`, from the time budget."""
        left = self.time_budget and max(1e-9, self.time_budget - (time.monotonic() - started))
        return dataclasses.replace(self, time_budget=left)


def settings_per_replica(settings: Settings | Sequence[Settings],
                         seeds: Sequence[int]) -> list[Settings]:
    """Return one `Settings` per seed, all of which can train side by side."""
    per_replica = [settings] * len(seeds) if isinstance(settings, Settings) else list(settings)
    if not seeds or len(per_replica) != len(seeds):
        raise ValueError(f"Got {len(per_replica)} settings for {len(seeds)} seeds: give one seed "
                         "or more, and settings for all of them or one per seed.")
    for name, part in vars(per_replica[0]).items():
        if isinstance(part, NotStored):
            raise ValueError(f"{name} must be set again: files do not hold a custom {part.what}.")
    for other in per_replica[1:]:
        differing = [name for name, part in vars(per_replica[0]).items()
                     if name not in ("objective", "intervention")
                     and not same(getattr(other, name), part)]
        differing += _clashes(per_replica[0].objective, other.objective)
        if differing:
            raise ValueError(f"Replicas of a run must agree in {', '.join(differing)}.")
    return per_replica


def _clashes(first: Objective, second: Objective) -> list[str]:
    """Name the fields in which two objectives differ and may not; floats may differ."""
    first, second, clashes = expanded(first), expanded(second), []
    if type(first) is not type(second):
        return ["the class of the objective"]
    if same(first, second):
        return []
    for field in dataclasses.fields(first):  # type: ignore[arg-type]
        pair = getattr(first, field.name), getattr(second, field.name)
        kinds = set(map(type, pair))
        if not same(*pair) and not (float in kinds and kinds <= {int, float}):
            clashes.append(f"objective.{field.name}")
    return clashes
