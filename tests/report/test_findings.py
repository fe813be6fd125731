"""Findings follow from the facts of a fit."""

import numpy as np
import pytest

from reclust import Curve
from reclust.report.findings import findings


def found(**changes):
    given = {"sizes": np.array([40, 30, 30]), "nmi": 0.9, "dimensions": 2.5, "ratio": 0.5,
             "label_change": Curve(np.arange(5), np.array([9, 9, 1, 1, 1.0])), "epochs": 5, "batch_size": 2, "noun": "replica"}
    return [one["title"] for one in findings(**{**given, **changes})]


@pytest.mark.parametrize(("changes", "title"), [
    ({"sizes": np.array([60, 37, 3])}, "Very small clusters"), ({"sizes": np.array([60, 20, 20])}, "One very large cluster"),
    ({"nmi": 0.3}, "Replicas disagree"), ({"nmi": None}, "One replica only"), ({"dimensions": 1.1}, "Collapsed embedding"),
    ({"ratio": 0.95}, "Overlapping clusters"), ({"batch_size": 60}, "Short training"), ({"nmi": 0.3, "noun": "member"}, "Members disagree"),
    ({"label_change": Curve(np.arange(3), np.array([1, 20, 20.0]))}, "Labels had not settled"),
])
def test_findings(changes, title):
    assert found() == []
    assert title in found(**changes)
