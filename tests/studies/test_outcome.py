"""What is stored of a trained group."""

import numpy as np

from reclust import Curve
from reclust.studies.outcome import thin_losses


def test_losses_are_kept_where_something_was_evaluated():
    loss = Curve(np.arange(10), np.zeros((10, 1)))
    evaluated = Curve(np.array([-1, 2, 9]), np.zeros((3, 1)))
    made = thin_losses({"clustering": {"loss": loss, "accuracy": evaluated}}, 5)["clustering"]
    assert made["loss"].epochs.tolist() == [0, 2, 4, 9] and made["accuracy"] is evaluated
