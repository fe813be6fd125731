"""Steps of the paper's interventions."""

from ...interventions import Every, KaimingNoise, Recluster, ResetMomentum, SoftReset, Step

RESET = SoftReset(0.8, KaimingNoise())
RECLUSTER = Recluster(rows="first")
MOMENTUM = ResetMomentum()


def every(*steps: Step, interval: int = 20) -> Every:
    return Every(interval, steps)
