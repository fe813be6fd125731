"""Scores against scikit-learn, brute force and each other."""

import itertools

import numpy as np
import pytest
import torch
from sklearn import metrics as oracle

from reclust import metrics

DEGENERATE = {
    "one sample": ([0], [3]),
    "both one cluster": ([1, 1, 1], [5, 5, 5]),
    "one true class": ([1, 1, 1, 1], [0, 1, 2, 2]),
    "one predicted cluster": ([0, 1, 2, 2], [7, 7, 7, 7]),
    "all distinct": ([0, 1, 2, 3], [9, 8, 7, 6]),
    "distinct against one": ([0, 1, 2, 3], [0, 0, 0, 0]),
    "independent": ([0, 0, 1, 1], [0, 1, 0, 1]),
    "two samples, split once": ([0, 1], [0, 0]),
    "negative labels and gaps": ([-5, -5, 100, 7, 7], [3, -1, -1, 20, 20]),
    "strings": (["cat", "dog", "cat", "eel"], ["b", "a", "b", "a"]),
}


def random_labelings(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        n, k_true, k = rng.integers(1, 200), rng.integers(1, 12), rng.integers(1, 12)
        true = rng.integers(0, k_true, n)
        mixed = np.where(rng.random(n) < rng.random(), true % k, rng.integers(0, k, n))
        yield true - 3, mixed * 5


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_cases_follow_scikit_learn(case):
    true, pred = (np.array(labels) for labels in DEGENERATE[case])
    assert metrics.nmi(true, pred) == pytest.approx(oracle.normalized_mutual_info_score(true, pred), abs=1e-12)
    assert metrics.ari(true, pred) == pytest.approx(oracle.adjusted_rand_score(true, pred), abs=1e-12)


def test_random_labelings_follow_scikit_learn():
    for true, pred in random_labelings(200):
        table = metrics.contingency(true, pred)
        np.testing.assert_array_equal(table, oracle.cluster.contingency_matrix(true, pred))
        assert metrics.nmi(true, pred) == pytest.approx(oracle.normalized_mutual_info_score(true, pred), abs=1e-12)
        assert metrics.ari(true, pred) == pytest.approx(oracle.adjusted_rand_score(true, pred), abs=1e-12)


@pytest.mark.parametrize("k_true, k", [(3, 3), (2, 4), (4, 2), (1, 3)])
def test_accuracy_is_the_best_over_all_matches(k_true, k):
    rng = np.random.default_rng(k_true * 10 + k)
    for _ in range(10):
        true, pred = rng.integers(0, k_true, 30), rng.integers(0, k, 30)
        wide = max(k_true, k)
        best = max(np.mean(np.array(names)[pred] == true) for names in itertools.permutations(range(wide), k))
        assert metrics.accuracy(true, pred) == pytest.approx(best)


def test_renaming_changes_nothing_and_equal_partitions_are_perfect():
    for true, pred in random_labelings(20):
        names = np.random.default_rng(1).permutation(1000)
        assert metrics.scores(true, pred) == pytest.approx(metrics.scores(names[true], names[pred]))
        assert metrics.scores(true, names[true]) == pytest.approx({"accuracy": 1, "nmi": 1, "ari": 1})


def test_scores_are_the_single_measures_in_any_container():
    for true, pred in random_labelings(10):
        expected = {name: getattr(metrics, name)(true, pred) for name in ("accuracy", "nmi", "ari")}
        assert metrics.scores(true, pred) == expected
        assert metrics.scores(torch.from_numpy(true), pred.tolist()) == expected


def test_batched_tables_are_the_single_tables():
    rng = np.random.default_rng(0)
    true, pred = rng.integers(0, 4, 300), rng.integers(0, 6, (5, 300))
    tables = metrics.batched_contingency(torch.from_numpy(true), torch.from_numpy(pred), 4, 6)
    assert tables.shape == (5, 4, 6)
    for table, labels in zip(tables, pred, strict=True):
        np.testing.assert_array_equal(table, metrics.contingency(true, labels))
    assert torch.equal(tables, metrics.batched_contingency(torch.from_numpy(true), torch.from_numpy(pred)))


def test_empty_rows_and_columns_of_a_table_change_nothing():
    for true, pred in random_labelings(20):
        table = metrics.contingency(true, pred)
        wider = np.pad(table, ((1, 2), (2, 1)))
        assert metrics.scores_of_table(wider) == pytest.approx(metrics.scores_of_table(table), abs=1e-15)


def test_a_million_samples_do_not_overflow():
    true = np.arange(10**6) % 2
    pred = np.where(np.arange(10**6) < 10**5, 1 - true, true)
    assert metrics.ari(true, pred) == pytest.approx(oracle.adjusted_rand_score(true, pred), rel=1e-14)
    assert metrics.ari(true, pred) == pytest.approx(0.64, abs=1e-4)


def test_label_change_is_zero_for_renamed_and_full_for_independent_labels():
    labels = np.array([0, 0, 1, 1])
    assert metrics.label_change(labels, 1 - labels) == pytest.approx(0, abs=1e-12)
    assert metrics.label_change(labels, np.array([0, 1, 0, 1])) == pytest.approx(100)


def test_sizes_count_each_row():
    labels = torch.tensor([[0, 0, 3], [1, 2, 0]])
    assert metrics.cluster_sizes(labels, 5).tolist() == [[2, 0, 0, 1, 0], [1, 1, 1, 0, 0]]


@pytest.mark.parametrize("true, pred", [([0, 1], [0]), ([], []), ([[0, 1]], [[0, 1]])])
def test_mismatched_labels_are_refused_with_both_shapes(true, pred):
    with pytest.raises(ValueError, match="two sequences of the same length .* got shapes"):
        metrics.scores(true, pred)


def test_matched_labels_have_the_names_of_the_reference():
    reference = np.array([2, 2, 5, 5, 5, 7])
    assert (metrics.matched(np.array([9, 9, 1, 1, 1, 4]), reference) == reference).all()
    assert metrics.matched(np.array([0, 1, 2, 2, 2, 3]), reference).tolist() in ([2, -1, 5, 5, 5, 7], [-1, 2, 5, 5, 5, 7])


@pytest.mark.parametrize("labels", [[1.0, np.nan, 2.0, np.nan], ["a", None, "b", None], np.array([0, np.nan, "b", np.nan], dtype=object)], ids=str)
def test_a_missing_label_is_no_class(labels):
    for given in ((labels, [0, 1, 1, 0]), ([0, 1, 1, 0], labels)):
        with pytest.raises(ValueError, match="2 of 4 labels are missing, the first in row 2"):
            metrics.scores(*given)
