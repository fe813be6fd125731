"""A progress bar for training."""

import numpy as np
from tqdm.auto import tqdm

from .base import Snapshot


class Progress:
    """Show a progress bar for each phase.

    Parameters
    ----------
    shown : bool or None, default=None
        None shows the bar only on a terminal.
    delay : float, default=1
        Seconds before it appears, so that quick fits stay silent.

    Examples
    --------
    >>> import numpy as np
    >>> from reclust import Autoencoder, DECObjective, Progress, Schedule, Settings, train
    >>> X = np.random.default_rng(0).normal(size=(30, 5)).astype("float32")
    >>> settings = Settings(2, DECObjective(), Autoencoder((8,)), pretraining=None,
    ...                     clustering=Schedule(1))
    >>> result = train(X, settings, seeds=[0], monitors=[Progress()])
    """

    def __init__(self, *, shown: bool | None = None, delay: float = 1.0) -> None:
        self._disable, self._delay = None if shown is None else not shown, delay
        self._bar: tqdm | None = None

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.moment == "start":
            self.close()
            self._bar = tqdm(total=snapshot.epochs, initial=snapshot.epoch + 1, unit="epoch",
                             desc=snapshot.phase, disable=self._disable, delay=self._delay,
                             leave=False)
        elif snapshot.moment == "epoch" and self._bar is not None:
            self._bar.update(snapshot.epoch + 1 - self._bar.n)
            self._bar.set_postfix(loss=f"{np.nanmean(snapshot.loss['loss']):.4f}", refresh=False)
            if snapshot.epoch == snapshot.epochs - 1:
                self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
