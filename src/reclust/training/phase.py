"""One phase of training, epoch by epoch: the loop itself."""

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import draws
from ..data.augmentation.affine import perturbation_of
from ..interventions import Recluster
from ..objectives import Staged
from ..utils.exceptions import StopTraining, warn
from .checkpoint import TrainingState
from .context import Deadline, RunContext
from .descent import GradientDescent
from .engine.embedding import Embedder
from .engine.firing import InterventionRunner
from .monitors.base import Moment, Snapshot
from .recorder import Recorder
from .settings import Schedule

LABELED_AT_ONCE = 2**20
EXPLODING_NORM = 1000  # relative to `clip_norm`, above which a warning is given


class Phase:
    """Pretraining (the loss of the representation) or clustering; without epochs it only embeds."""

    def __init__(self, context: RunContext, name: str, schedule: Schedule, recorder: Recorder,
                 resumed: TrainingState | None = None) -> None:
        common, replicas, inputs = context.common, context.replicas, context.inputs
        self.context, self.name, self.schedule, self.recorder = context, name, schedule, recorder
        staged = name == "clustering" and isinstance(common.objective, Staged)
        # `name` is used in random draws and checkpoints, `title` everywhere else.
        self.title = common.objective.stage if staged else name  # type: ignore[attr-defined]
        self.relabels = staged and common.objective.relabels  # type: ignore[attr-defined]
        self.key = draws.fold(replicas.key, name)
        self.descent = GradientDescent(context, schedule, self.key)
        self.embedder = Embedder(replicas, inputs, self.descent.executor,
                                 common.augment or perturbation_of(inputs.sample_shape),
                                 context.precision)
        self.interventions = InterventionRunner(
            context.settings if name == "clustering" else (), replicas, self.embedder,
            self.descent.optimizer, self.key, self.timer)
        self.resumed, self.trained = resumed is not None, 0
        if resumed is not None:
            self.trained = resumed.epoch
            self.descent.optimizer.restore_(resumed.optimizer)
            self.interventions.restore_(resumed.memory)
        self.memory: dict[str, dict[str, Tensor]] = {}
        if schedule.neighbors_in == "embedding" and schedule.epochs > 0:
            saved = None if resumed is None else resumed.memory["neighbors"]
            self.memory["neighbors"] = saved or {"rows": self._neighbors()}
            self.descent.batches.neighbors = self.memory["neighbors"]["rows"].to(inputs.device)
        self._warned_of_explosion = False

    @torch.no_grad()
    def _neighbors(self) -> Tensor:
        with self.timer("neighbors"):
            z = torch.nn.functional.normalize(self.embedder.embed(), dim=-1)
            return self.descent.batches.find_neighbors(z)

    def timer(self, part: str) -> AbstractContextManager[None]:
        return self.recorder.clock(f"{self.title}.{part}")

    def run(self, deadline: Deadline) -> bool:
        """Train all epochs; return False if the time budget ran out first."""
        self._follow_first()
        self._observe("start", self.trained - 1)
        if not self.resumed:
            self._save(0)  # so that a full disk is noticed before an epoch is lost
        for epoch in range(self.trained, self.schedule.epochs):
            if self.context.ranks.stop(deadline.passed):
                break
            fired = self.interventions.take(epoch)  # soft reset, recluster, reset momentum
            if self.interventions.fires(epoch).any():
                fired = self._follow_first(fired)
            if fired.any():
                self.context.replicas.refresh_working_()
                self._observe("intervention", epoch, fired=fired)
            if self.relabels:
                with self.timer("labels"):
                    self.descent.batches.targets = self.embedder.targets()
            with self.timer("training"):
                losses = self.descent.train_epoch(epoch)
            with self.timer("centers"):
                self.descent.move_centers(epoch)
            self.trained = epoch + 1
            self.recorder.record_failures(self.title, epoch, losses["loss"], self.schedule.lr)
            self._warn_of_explosion(epoch, losses.get("gradient_norm"))
            self.recorder.add(self.title, epoch, losses | ({"fired": fired} if fired.any() else {}))
            self._observe("epoch", epoch, losses, fired)
            self._save(epoch + 1)
        self.descent.captured.clear()
        finished = self.trained == self.schedule.epochs
        if not finished:
            warn(f"The time budget was spent after {self.trained} of {self.schedule.epochs} epochs "
                 f"of {self.title}.")
            self._save(self.trained, force=True)
        # Losses are computed before each step, so only the weights show what the last step did.
        self._record_failures(self.context.replicas.finite())
        return finished

    def _follow_first(self, fired: np.ndarray | None = None) -> Any:
        """Continue from the tensors of rank 0: reclustering on GPUs may differ in rounding."""
        replicas, ranks = self.context.replicas, self.context.ranks
        ranks.follow_first_(replicas.parameters, replicas.buffers, replicas.state,
                            self.descent.optimizer.tensors())
        return ranks.from_first(lambda: fired)

    def _warn_of_explosion(self, epoch: int, norm: np.ndarray | None) -> None:
        limit = self.schedule.clip_norm
        if self._warned_of_explosion or limit is None or norm is None:
            return
        if (norm > EXPLODING_NORM * limit).any():
            self._warned_of_explosion = True
            warn(f"Gradients explode in epoch {epoch} of {self.title}, to a norm of "
                 f"{np.nanmax(norm):.3g}, clipped to {limit:g}. Scale the data (standardize=True), "
                 f"or try a smaller lr (now {self.schedule.lr:g}).")

    def _observe(self, moment: Moment, epoch: int, losses: dict[str, np.ndarray] | None = None,
                 fired: np.ndarray | None = None) -> None:
        if not self.context.monitors:
            return
        replicas, embedder, ranks = self.context.replicas, self.embedder, self.context.ranks
        parameters, state = ({name: stack.detach() for name, stack in stacks.items()}
                             for stacks in (replicas.parameters, replicas.state))
        snapshot = Snapshot(
            self.title, moment, epoch, self.schedule.epochs, losses or {},
            np.zeros(len(replicas), dtype=bool) if fired is None else fired,
            embedder.embed, embedder.assign, parameters=parameters, state=state,
            fires_next=self.interventions.fires(epoch + 1) & (epoch + 1 < self.schedule.epochs),
            centers=state.get("centers"), representation_loss=embedder.representation_loss,
            n_samples=self.context.inputs.n_samples, settings=self.context.common)
        recorded = moment == "start" and self.resumed  # by the run that this one continues
        stop = None
        with self.timer("evaluation"):
            for monitor in self.context.monitors if ranks.is_first else ():
                try:
                    measured = monitor(snapshot)
                except StopTraining as request:  # raised below, once all monitors were called
                    measured, stop = None, stop or request
                if measured and not recorded:
                    snapshot.measured.update(self.recorder.add(self.title, epoch, measured))
            measured, stop = ranks.from_first(lambda: (snapshot.measured, stop))
            if not ranks.is_first:
                self.recorder.add(self.title, epoch, measured)
        if stop is not None:
            if moment == "epoch":
                self._save(epoch + 1, force=True)
            raise stop

    def _save(self, next_epoch: int, *, force: bool = False) -> None:
        self.recorder.save(self.name, next_epoch, self.descent.optimizer.tensors(),
                           self.interventions.memory | self.memory,
                           last=next_epoch == self.schedule.epochs, force=force)

    def _record_failures(self, finite: np.ndarray) -> None:
        loss = np.where(finite, 0.0, np.nan)
        self.recorder.record_failures(self.title, self.trained - 1, loss, self.schedule.lr)

    @torch.no_grad()
    def find_centers(self, method: Recluster, n_clusters: int) -> Tensor:
        """Cluster the embeddings of all samples; return the centers, (r, k, d)."""
        replicas, dtype = self.context.replicas, self.context.precision.dtype
        z = self.embedder.embed(replicas.key.new_zeros(len(replicas), 1))  # tells the size d
        centers = z.new_zeros(len(replicas), n_clusters, z.shape[-1], dtype=dtype)
        if self.context.common.first_mode == "train":
            self.embedder.training_batch = self.schedule.batch_size
        with self.timer(method.part):
            method(self.interventions.target(slice(None), centers))
        return centers

    def label(self) -> np.ndarray:
        """Assign all samples, (r, n)."""
        inputs, labels, finite = self.context.inputs, [], torch.tensor(True)
        for rows in torch.arange(inputs.n_samples, device=inputs.device).split(LABELED_AT_ONCE):
            z = self.embedder.embed(rows)
            # Weights may be finite and still too large for finite embeddings.
            finite = finite.to(z.device) & z.isfinite().all(-1).all(-1)
            labels.append(self.embedder.assign(z).int())
        self._record_failures(finite.cpu().numpy())
        return torch.cat(labels, dim=1).cpu().numpy()
