"""Initial weights."""

import numpy as np
from torch import nn

from reclust.representations import weights


def test_fans_are_those_of_the_weights():
    for layer in (nn.Linear(7, 3), nn.Conv2d(6, 4, (3, 2), groups=2), nn.ConvTranspose2d(6, 4, 3, groups=2), nn.Conv1d(5, 5, 4)):
        assert weights.fan_in(layer) == np.prod(layer.weight.shape[1:])
