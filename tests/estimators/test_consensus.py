"""A vote of replicas: names mean nothing, the weights decide, and the reference settles ties."""

import numpy as np
import pytest
from support import blobs

import reclust
from reclust import IDEC, Autoencoder
from reclust.estimators.consensus import consensus, vote_weights

RNG = np.random.default_rng(0)
REFERENCE = RNG.integers(4, size=60)
OTHERS = RNG.integers(4, size=(3, 60))


def test_what_all_agree_on_stays_whatever_the_names():
    renamed = np.stack([np.array(names)[REFERENCE] for names in ([3, 2, 1, 0], [0, 1, 2, 3], [7, 5, 9, 2])])
    assert (consensus(renamed, REFERENCE, np.ones(3)) == REFERENCE).all()


def test_one_replica_with_all_the_weight_decides_up_to_names():
    voted = consensus(OTHERS, REFERENCE, np.array([0.0, 1.0, 0.0]))
    assert len(set(zip(voted, OTHERS[1], strict=True))) == 4
    assert (consensus(OTHERS, REFERENCE, np.zeros(3)) == REFERENCE).all()


def test_the_majority_wins_on_each_sample_and_the_reference_wins_ties():
    labels = np.tile(REFERENCE, (3, 1))
    labels[1:, 0], labels[1, 1] = (REFERENCE[0] + 1) % 4, (REFERENCE[1] + 1) % 4
    assert (consensus(labels, REFERENCE, np.ones(3)) == np.r_[labels[1, 0], REFERENCE[1:]]).all()
    assert (consensus(labels[:2], REFERENCE, np.ones(2)) == REFERENCE).all()


def test_the_order_of_replicas_does_not_matter():
    weights = np.array([0.1, 0.2, 0.3])
    assert (consensus(OTHERS, REFERENCE, weights) == consensus(OTHERS[::-1], REFERENCE, weights[::-1])).all()


def test_clusters_that_the_reference_does_not_have_abstain():
    few = np.minimum(REFERENCE, 1)
    assert set(consensus(np.stack([REFERENCE, REFERENCE]), few, np.ones(2))) == {0, 1}


@pytest.mark.parametrize(("scores", "weights"), [
    ([0.1, 0.2, 0.3], [0, 0, 1]), ([0.1, 0.1, 0.1, 0.3, 0.25], [0, 0, 0, 1, 0.75]), ([-10.0, -30.0, -20.0], [1, 0, 0]), ([0.5, 0.5], [1, 1]),
    ([-np.inf, 0.2, 0.1, 0.4], [0, 0, 0, 1]), ([np.nan], [1]), ([-np.inf, -np.inf], [1, 1]),
])
def test_weights_know_no_scale_and_leave_out_the_lower_half(scores, weights):
    assert vote_weights(np.array(scores)) == pytest.approx(weights)


def test_an_estimator_keeps_the_consensus_beside_its_labels(tmp_path):
    X, _ = blobs(n=80)
    given = {"pretrain_epochs": 2, "epochs": 2, "batch_size": 40, "representation": Autoencoder((16, 8)), "intervention": None, "random_state": 0, "device": "cpu"}
    model = IDEC(4, n_init=4, consensus=True, **given).fit(X)
    scores, labels = (np.array([getattr(one, name) for one in model.replicas_]) for name in ("score", "labels"))
    assert (model.consensus_labels_ == consensus(labels, model.labels_, vote_weights(scores))).all()
    model.save(tmp_path / "m.reclust")
    assert (reclust.load(tmp_path / "m.reclust").consensus_labels_ == model.consensus_labels_).all()
    alone = IDEC(4, consensus=True, **given).fit(X)
    assert (alone.consensus_labels_ == alone.labels_).all()
    assert "consensus_labels_" not in vars(IDEC(4, n_init=2, **given).fit(X))
