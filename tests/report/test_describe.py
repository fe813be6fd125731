"""Rules in words: planted ones are found, and coverage and precision are what a plain count says."""

import numpy as np
import pytest
from support import blobs

from reclust import Reclust
from reclust.data.encoding import Feature
from reclust.report.describe import Condition, class_words, describe, in_words, show_number

pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
KIND = np.arange(120) % 3
TABLE = pd.DataFrame({"age": RNG.normal([20, 45, 70], 3, (120, 3))[np.arange(120), KIND], "noise": RNG.normal(size=120),
                      "channel": np.array(["shop", "online", "phone"])[KIND], "member": KIND == 1})


@pytest.fixture(scope="module")
def model():
    return Reclust(3, effort="quick", random_state=0, device="cpu").fit(TABLE)


def test_planted_rules_are_found_and_counted(model):
    frame = model.describe(TABLE)
    assert frame["size"].tolist() == np.bincount(model.labels_).tolist() and frame["share"].sum() == pytest.approx(1)
    assert (frame["coverage"] > 0.95).all() and (frame["precision"] > 0.95).all()
    for cluster, row in frame.iterrows():
        kind = np.bincount(KIND[model.labels_ == cluster]).argmax()
        channel = ["shop", "online", "phone"][kind]
        assert row["channel"] == channel and row["age"] == pytest.approx([20, 45, 70][kind], abs=2)
        assert "age" in row["description"] or f"channel={channel}" in row["description"] or "member" in row["description"]
        assert set(model.labels_[[*row["typical"], *row["doubtful"]]]) == {cluster}


def test_coverage_and_precision_by_hand():
    X, _ = blobs(90)
    model = Reclust(3, effort="quick", random_state=0, device="cpu").fit(X)
    for one in describe(model, model.check_input(X)):
        assert one["description"].startswith("feature ") and 0 < one["coverage"] <= 1 and 0 < one["precision"] <= 1


@pytest.mark.parametrize(("bounds", "kind", "words"), [
    ((80_000, np.inf), "number", "x from 80,000"), ((-np.inf, 0.01234), "number", "x up to 0.0123"), ((30, 45), "number", "x 30 to 45"),
    ((1, np.inf), "flag", "x"), ((-np.inf, 0), "flag", "not x"), ((2020.5, np.inf), "date", "x from 2020-07-01"),
])
def test_conditions_in_words(bounds, kind, words):
    assert in_words([Condition(0, *bounds, np.ones(3, bool))], [Feature("x", kind)]) == words


def test_levels_in_words():
    yes, no = Condition(0, 1, np.inf, np.ones(1, bool)), Condition(0, -np.inf, 0, np.ones(1, bool))
    assert in_words([yes, no], [Feature("channel=shop", "level")]) == "channel=shop, not channel=shop"
    assert in_words([], []) == "like all others" and show_number(1234.5, "number") == "1,230"


def test_images_have_no_rules():
    images = RNG.integers(0, 256, (40, 8, 8)).astype(np.uint8)
    model = Reclust(2, effort="quick", random_state=0, device="cpu").fit(images)
    assert [one["description"] for one in describe(model, model.check_input(images))] == ["", ""]


def test_words_of_free_text_are_those_of_the_cluster():
    rng, kind = np.random.default_rng(0), np.arange(120) % 2
    words = (["cat", "dog", "fur", "paw", "pet", "vet"], ["bond", "fund", "loan", "cash", "bank", "rate"])
    table = pd.DataFrame({"note": [" ".join([["and", "with"][i], *rng.choice(words[i], 5)]) for i in kind], "size": 5.0 * kind + rng.normal(size=120)})
    model = Reclust(2, effort="quick", random_state=0).fit(table)
    for cluster, text in model.describe(table)["description"].items():
        own = words[kind[np.flatnonzero(model.labels_ == cluster)[0]]]
        assert set(text.partition("note: ")[2].split(", ")) < set(own)


def test_class_words_by_hand():
    texts, labels = ["cat cat dog", "cat fish", "dog dog fish", "the and"], np.array([4, 4, 7, 7])
    counts = {4: {"cat": 3, "dog": 1, "fish": 1}, 7: {"dog": 2, "fish": 1}}
    totals = {"cat": 3, "dog": 3, "fish": 2}
    weight = {cluster: {word: n / sum(own.values()) * np.log(1 + 4 / totals[word]) for word, n in own.items()} for cluster, own in counts.items()}
    assert class_words(texts, labels) == {cluster: sorted(own, key=lambda word: -own[word]) for cluster, own in weight.items()}
    assert class_words(["the", "and"], np.array([0, 1])) == {}


def test_columns_named_like_the_facts_change_none(model):
    frame = TABLE.rename(columns={"age": "size", "noise": "share", "channel": "cluster", "member": "description"})
    named = Reclust(3, effort="quick", random_state=0, device="cpu").fit(frame)
    pd.testing.assert_series_equal(named.describe(frame)["share"], model.describe(TABLE)["share"])
    assert named.describe(frame).index.tolist() == [0, 1, 2] and named.describe(frame)["description"][0].startswith("cluster=")


def test_dates_beyond_the_calendar_are_years():
    assert show_number(2020.5, "date") == "2020-07-01" and show_number(294247.0, "date") == "294,000"
