"""Self-labeling: a linear head learns the clusters, then its confident predictions teach both."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from ..data import Prepared
from ..data.augmentation.strong import StrongViews
from ..data.inputs import Inputs
from ..objectives import HeadObjective, SelfLabelObjective
from ..objectives.base import membership
from ..objectives.self_label import Head, Labels, logits
from ..utils.exceptions import warn
from ..utils.values import choice, number, value
from .checkpoint import Checkpoint
from .monitors.base import Measured, Monitor, PeriodicMonitor, Snapshot
from .result import Result
from .settings import Execution, Schedule, Settings
from .train import train


class Activity(PeriodicMonitor):
    """Count confident samples, classes with confident samples, and classes with any sample."""

    def __init__(self, threshold: float, *, every: int = 10) -> None:
        super().__init__(every=every)
        self.threshold = threshold

    def measure(self, snapshot: Snapshot) -> Measured:
        scores = logits(dict(snapshot.state), snapshot.embeddings).detach()
        confidence, labels = scores.softmax(-1).max(-1)
        members = membership(labels, snapshot.state["head_bias"].shape[-1])
        confident = (confidence > self.threshold).unsqueeze(-1)
        sizes, active = (part.sum(1).cpu().numpy() for part in (members, members & confident))
        idle = (active.sum(-1) == 0).sum()
        if idle and snapshot.epoch < 0:
            warn(f"No sample is above the confidence threshold {self.threshold:g} after the "
                 f"warm-up in {idle} of {len(active)} replicas: warm up longer, or lower it.")
        return {"active_samples": active.sum(-1), "active_classes": (active > 0).sum(-1),
                "classes": (sizes > 0).sum(-1)}


@value
class SelfLabel:
    """Settings of self-labeling.

    Parameters
    ----------
    threshold : float or None, default=None
        Confidence above which the head's prediction for a sample is used as its label, 0.99 in the
        published method. None uses the surest samples of each class, the more the surer they are.
    evenness : float, default=2
        Weight of the entropy of the mean prediction, which keeps classes alive. The published
        method has none.
    warmup : Schedule
        Training of the head on a frozen network.
    training : Schedule
        Training of head and network. The default views are strong augmentations of color images;
        for other data use ("clean", "augmented").
    labels : {"epoch", "step"}, default="epoch"
        When samples are labeled: at the start of each epoch, in eval mode, or as published at each
        step, by the first view in train mode. The latter loses classes more easily.
    head : {"centers", "default"}, default="centers"
        The head before the warm-up: that of the nearest center, or of a new linear layer, which
        needs many steps to become confident if embeddings are small.

    Examples
    --------
    >>> from reclust import Schedule, SelfLabel
    >>> SelfLabel(training=Schedule(50, views=("clean", "augmented"))).warmup.epochs
    20
    """

    threshold: float | None = number(default=None, least=0, below=1, optional=True)
    evenness: float = number(default=2.0, least=0)
    warmup: Schedule = Schedule(epochs=20, batch_size=1000, views=("clean",), network="frozen")
    training: Schedule = Schedule(epochs=200, batch_size=1000, views=("clean", StrongViews()),
                                  first_view="decides")
    labels: Labels = choice("epoch", "step", default="epoch")
    head: Head = choice("centers", "default", default="centers")

    def settings(self, clustered: Settings) -> tuple[Settings, Settings]:
        common = replace(clustered, intervention=None, pretraining=None, first_centers=None)
        objective = SelfLabelObjective(self.threshold, self.evenness, self.labels)
        return (replace(common, objective=HeadObjective(self.head), clustering=self.warmup),
                replace(common, objective=objective, clustering=self.training))


def self_label(data: Inputs | Prepared | Tensor | np.ndarray, clustered: Result,
               how: SelfLabel = SelfLabel(), *, monitors: Sequence[Monitor] = (),
               execution: Execution = Execution(), checkpoint: Checkpoint | None = None) -> Result:
    """Refine every replica of a clustering by self-labeling.

    Parameters
    ----------
    data : Inputs, Prepared, Tensor or ndarray of shape (n_samples, *sample_shape)
        The clustered samples, as passed to `train`.
    clustered : Result
        The clustering to start from.
    how : SelfLabel, default=SelfLabel()
        Settings of both stages.
    monitors, execution, checkpoint
        As in `train`. The warm-up has its own file next to the checkpoint.

    Returns
    -------
    Result
        Labels are the head's predictions; the history has phases "warm-up" and "self-labeling".

    Examples
    --------
    >>> import numpy as np
    >>> from reclust import DECObjective, Schedule, SelfLabel, Settings, self_label, train
    >>> X = np.repeat(np.eye(3, 5, dtype="float32"), 20, axis=0)
    >>> settings = Settings(3, DECObjective(), pretraining=None, clustering=Schedule(2))
    >>> how = SelfLabel(threshold=0.3, training=Schedule(2, views=("clean",)))
    >>> self_label(X, train(X, settings, seeds=[0]), how).labels.shape
    (1, 60)
    """
    started = time.monotonic()
    # Always saved: retraining the warm-up on a GPU would not give exactly the same start.
    before = None if checkpoint is None else replace(checkpoint.named("warmup"), seconds=0.0)
    warming, labeling = zip(*map(how.settings, clustered.settings), strict=True)
    warm = train(data, warming, seeds=clustered.seeds, start=clustered, monitors=monitors,
                 checkpoint=before, execution=execution)
    if warm.trained_epochs("warm-up") < how.warmup.epochs:
        checkpoint = None  # the result after a shortened warm-up must not be continued
    labeled = train(data, labeling, seeds=clustered.seeds, start=warm, checkpoint=checkpoint,
                    monitors=[Activity(how.threshold or 0.0), *monitors],
                    execution=execution.with_time_left(started))
    return replace(labeled, history=warm.history | labeled.history,
                   seconds=warm.seconds | labeled.seconds)
