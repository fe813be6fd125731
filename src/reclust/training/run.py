"""One run: pretraining, first centers, clustering, labels."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..data.inputs import Inputs
from ..utils.device import Precision
from .checkpoint import Checkpoint, TrainingState
from .context import Deadline, RunContext
from .engine.firing import sharing
from .engine.replicas import Replicas
from .phase import Phase
from .preflight import check_data_and_parts
from .recorder import Recorder
from .result import Result
from .settings import Schedule, Settings


def run(context: RunContext, checkpoint: Checkpoint | None) -> Result:
    """Train all replicas side by side, from the start or from a checkpoint."""
    common, replicas, start = context.common, context.replicas, context.start
    deadline = Deadline(context.execution.time_budget)
    recorder = Recorder(context, checkpoint)
    resumed = recorder.resume()
    if resumed is not None:
        _restore(context, resumed)
    if context.precision.products != context.precision.dtype:
        replicas.work_in(context.precision.products)

    in_pretraining = resumed is None or resumed.phase == "pretraining"
    if common.pretraining is not None and start is None and in_pretraining:
        phase = Phase(context, "pretraining", common.pretraining, recorder, resumed)
        if not phase.run(deadline):
            recorder.checkpoint = None  # clustering must not overwrite unfinished pretraining
        del phase  # and with it the optimizer's memory
        resumed = None

    if common.clustering is None:
        return recorder.result(labels=None)
    if resumed is None:
        _start_objectives(context, recorder)
    clustering = Phase(context, "clustering", common.clustering, recorder, resumed)
    clustering.run(deadline)
    return recorder.result(clustering.label())


def create_replicas(inputs: Inputs, settings: Sequence[Settings], seeds: Sequence[int],
                    start: Result | None, precision: Precision,
                    targets: Tensor | None = None) -> Replicas:
    """Create replicas, with the weights of `start` if given, and check that they can train."""
    first = settings[0]
    replicas = Replicas.create(first.representation, inputs.sample_shape, first.n_clusters,
                               seeds=seeds, device=precision.device, dtype=precision.dtype)
    for which, intervention in sharing(settings):
        intervention.check(replicas.blocks(which))
    pretrains = start is None and first.pretraining is not None
    check_data_and_parts(replicas, settings, inputs, targets, pretrains=pretrains)
    if start is not None:
        _adopt_weights(replicas, start)
    if first.first_centers is None and (start is None or start.n_clusters != first.n_clusters):
        problem = "start=None" if start is None else f"start has {start.n_clusters} centers"
        raise ValueError(f"first_centers=None takes the {first.n_clusters} centers from start, but "
                         f"{problem}.")
    return replicas


def _adopt_weights(replicas: Replicas, start: Result) -> None:
    pairs = ((replicas.parameters, start.parameters), (replicas.buffers, start.buffers))
    for stacks, start_stacks in pairs:
        shapes, start_shapes = ({name: stack.shape[1:] for name, stack in some.items()}
                                for some in (stacks, start_stacks))
        if shapes != start_shapes:
            raise ValueError("start has another architecture; an autoencoder's embedding has one "
                             "dimension per cluster unless Autoencoder(embedding=10) sets it.")
        for name, tensor in stacks.items():
            tensor.copy_(start_stacks[name])


def _start_objectives(context: RunContext, recorder: Recorder) -> None:
    """Find the first centers, or take the state of `start`, and initialize the objectives."""
    common, replicas, start = context.common, context.replicas, context.start
    objectives = [settings.objective for settings in context.settings]
    if common.first_centers is not None:
        assert common.clustering is not None
        schedule = Schedule(epochs=0, batch_size=common.clustering.batch_size)
        embedding_phase = Phase(context, "first centers", schedule, recorder)
        centers = embedding_phase.find_centers(common.first_centers, common.n_clusters)
        with torch.no_grad():
            replicas.start_objectives(objectives, centers)
        return
    assert start is not None
    like = next(iter(replicas.parameters.values()))
    known = {name: stack.to(like.device, like.dtype if stack.is_floating_point() else None)
             for name, stack in start.state.items()}
    replicas.start_objectives(objectives, known["centers"])
    state = {name: known.get(name, initial) for name, initial in replicas.state.items()}
    replicas.set_objectives(objectives, state)


def _restore(context: RunContext, state: TrainingState) -> None:
    replicas = context.replicas
    if state.phase == "clustering":
        objectives = [settings.objective for settings in context.settings]
        centers = state.tensors["state"]["centers"].to(context.inputs.device)
        replicas.start_objectives(objectives, centers)
    for kind, saved in state.tensors.items():
        for name, tensor in getattr(replicas, kind).items():
            tensor.copy_(saved[name])
