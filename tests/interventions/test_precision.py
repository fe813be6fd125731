"""Interventions in half precision and under autocast."""

import numpy as np
import pytest
import torch
from support import blobs
from torch import nn

from reclust import Every, Recluster, Target
from reclust.interventions import NativeRecluster, RecomputeCenters, SplitMerge

X = blobs(80)[0].astype(np.float32)


def own_loop(**given):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 4))
    centers = nn.Parameter(torch.randn(3, 4, generator=torch.Generator().manual_seed(0)))
    return encoder, centers, lambda **more: Target.of(encoder, centers, **{"embed": lambda: encoder(torch.from_numpy(X))} | given | more)


@pytest.mark.parametrize("step", [NativeRecluster(), RecomputeCenters(), SplitMerge(probability=1.0), Recluster()], ids=lambda step: type(step).__name__)
def test_half_centres_and_autocast_are_welcome(step):
    encoder, centers, target = own_loop()
    with torch.no_grad():
        Every(1, (step,))(1, target())
        plain = centers.detach().clone()
        centers.copy_(torch.randn(3, 4, generator=torch.Generator().manual_seed(0)))
        with torch.autocast("cpu", torch.bfloat16, enabled=True):
            z = nn.functional.linear(torch.ones(1, 1), torch.ones(1, 1))
            assert z.dtype == torch.bfloat16
            exact = torch.from_numpy(X)
            with torch.autocast("cpu", enabled=False):
                exact = encoder(exact)
            Every(1, (step,))(1, target(embed=lambda: exact))
        torch.testing.assert_close(centers.detach(), plain)
        half = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).half()
        Every(1, (step,))(1, Target.of(encoder, half, embed=lambda: exact))
        assert half.isfinite().all()
