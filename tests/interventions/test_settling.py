"""When clusterings have settled."""

from typing import ClassVar

import numpy as np
import torch

from reclust import Step, Target, draws, value
from reclust.interventions import WhenSettled


@value
class Flip(Step):
    """Gives every sample the other one of two labels."""

    sign: ClassVar[list] = [1.0]
    part: ClassVar[str] = "flip"

    def __call__(self, target):
        self.sign[0] *= -1


def test_after_a_firing_labels_are_compared_with_those_that_it_left():
    Flip.sign[0] = 1.0
    z = torch.linspace(-1, 1, 40).unsqueeze(-1)
    encoder, notes = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)), {}
    when = WhenSettled((Flip(),), threshold=0.5, look=1, shortest=1, longest=100)
    fired = [bool(when(epoch, Target.of(encoder, torch.tensor([[-1.0], [1.0]]), embed=lambda: Flip.sign[0] * z, memory=notes))) for epoch in range(4)]
    assert fired == [False, True, True, True]


def test_a_replica_that_failed_has_no_say_in_when_all_of_them_settle():
    fired = []
    for sick in ((), (1,)):
        z = torch.linspace(-1, 1, 40).reshape(1, -1, 1).repeat(2, 1, 1)
        z[list(sick)] = torch.nan
        state = {"sign": 1.0}
        target = Target(blocks={}, centers=torch.tensor([[-1.0], [1.0]]).expand(2, 2, 1), key=torch.stack([draws.key(0), draws.key(1)]),
                        embedder=lambda rows, state=state, z=z: state["sign"] * z, assigner=lambda z: (z.squeeze(-1) > 0).long(),
                        n_samples=40, memory={}, peers=object())
        when = WhenSettled((Flip(),), threshold=0.75, look=1, shortest=1, longest=100, decide="together")
        flags = []
        for epoch in range(4):
            flags.append(bool(np.any(when(epoch, target))))
            state["sign"] *= -1  # all labels change from look to look, of replicas that have any
        fired.append(flags)
    assert fired[0] == fired[1] == [False] * 4
