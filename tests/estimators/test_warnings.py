"""Warnings are about the line of the user, however deep in the program they come from."""

import warnings

import pytest
from support import blobs, small_settings

from reclust import IDEC, Execution, ReclustWarning, SelfLabeling, train

X, _ = blobs(n=60)


@pytest.fixture(scope="module")
def model():
    return IDEC(2, preset=small_settings(n_clusters=2), intervention=None, random_state=0, device="cpu").fit(X)


@pytest.mark.parametrize("call", [
    lambda model: IDEC(2, preset=small_settings(), time_budget=1e-6, device="cpu").fit(X),
    lambda model: train(X, small_settings(), seeds=[0], execution=Execution(device="cpu", time_budget=1e-6)),
    lambda model: SelfLabeling(model, time_budget=1e-6, device="cpu").fit(X),
], ids=["estimator", "train", "SelfLabeling"])
def test_a_warning_names_the_users_file(model, call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ReclustWarning)
        call(model)
    about = [one for one in said if "time budget" in str(one.message)]
    assert about and {one.filename for one in about} == {__file__}
