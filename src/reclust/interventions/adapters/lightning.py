"""Interventions in Lightning's training loop. Needs the extra `lightning`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...utils.exceptions import require
from .. import BRB, Intervention, Target

if TYPE_CHECKING:
    Callback = object
else:
    Callback = require("lightning.pytorch", purpose="InterventionCallback",
                       extra="lightning").Callback


class InterventionCallback(Callback):
    """Run an intervention at the start of training epochs.

    When it fires, it acts on ``target(trainer, module)``, such as ``Target.of(module.encoder,
    module.centers, trainer.optimizers[0], embed=lambda: module.encoder(X))``.
    """

    def __init__(self, intervention: Intervention = BRB(), *,
                 target: Callable[[Any, Any], Target]) -> None:
        self.intervention, self.target = intervention, target

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if self.intervention.fires(trainer.current_epoch):
            self.intervention(trainer.current_epoch, self.target(trainer, pl_module))
