"""Clusters of a table in words: the rule that tells a cluster from the others best."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from ..data.accept import SampleSet
from ..data.dataset import dense_rows
from ..data.encoding import Feature, TableEncoder, TextColumn
from .versus_kmeans import FittedModel

MAX_ROWS, MAX_FEATURES = 20_000, 50  # rows and features in which rules are sought
MAX_CONDITIONS = 3
GAIN = 0.01  # in F1 that a further condition must bring
MEMBERS, WORDS = 3, 5  # typical and doubtful members; words of a text
TELLING = 0.2  # of a cluster's strongest word, below which others are not named
VOCABULARY = 20_000  # words of all texts
YES, COMMON = 0.5, 1.3  # share of a level that most have, and how many times more than others


class Condition(NamedTuple):
    """Bounds of a feature; rows (n,) that are within them."""

    feature: int
    low: float
    high: float
    rows: np.ndarray


def describe(model: FittedModel, samples: SampleSet) -> list[dict[str, Any]]:
    """Describe each cluster: size, rule with coverage and precision, members, typical values."""
    labels, confidence = model.assign(samples.array)
    clusters, first = np.unique(labels, return_index=True)
    some = np.unique([*range(0, len(labels), -(-len(labels) // MAX_ROWS)), *first])
    features = features_of(samples)
    x = dense_rows(samples.array, some).astype(np.float64) if features else np.zeros((len(some), 0))
    ids = np.arange(len(labels)) if samples.ids is None else samples.ids
    chosen = _informative(x, labels[some], features)
    words = class_words(samples.texts, labels) if samples.texts else {}
    described = []
    for cluster in clusters.tolist():
        members = np.flatnonzero(labels == cluster)
        order = members[np.argsort(-confidence[members], kind="stable")]
        inside = labels[some] == cluster
        rule = _rule(x, inside, chosen)
        covered = np.logical_and.reduce([part.rows for part in rule]) if rule else ~inside & inside
        both = (covered & inside).sum()
        described.append({
            **_values(x[inside], features),  # columns may have the names of these facts
            "cluster": cluster, "size": len(members), "share": len(members) / len(labels),
            "description": in_words(rule, features) + _mostly(x, inside, features, rule)
            + _words(x, inside, samples.encoder) if features else ", ".join(words.get(cluster, ())),
            "coverage": both / inside.sum() if features else np.nan,
            "precision": both / max(1, covered.sum()) if features else np.nan,
            "confidence": float(confidence[members].mean()),
            "typical": ids[order[:MEMBERS]].tolist(),
            "doubtful": ids[order[::-1][:MEMBERS]].tolist()})
    return described


def features_of(samples: SampleSet) -> list[Feature]:
    """Return the features of a table, none of images, texts, and many columns without names."""
    unnamed = samples.feature_names is None and samples.n_features > MAX_FEATURES
    if samples.image_shape is not None or samples.texts or unnamed:
        return []
    if samples.encoder is not None:
        return samples.encoder.features
    names = samples.feature_names or [f"feature {i}" for i in range(samples.n_features)]
    return [Feature(name, "number") for name in names]


def class_words(texts: Sequence[str], labels: np.ndarray) -> dict[int, list[str]]:
    """Find the words of each cluster by class-based TF-IDF, as in BERTopic."""
    counter = CountVectorizer(stop_words="english", max_features=VOCABULARY)
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # only stop words
        return {}
    clusters, codes = np.unique(labels, return_inverse=True)
    used = (sparse.csr_array(np.eye(len(clusters)))[codes].T @ counts).toarray()
    share = used / np.maximum(used.sum(1, keepdims=True), 1)
    weights = share * np.log1p(used.sum() / len(clusters) / used.sum(0))
    names = counter.get_feature_names_out()
    return {int(cluster): [names[i] for i in np.argsort(-row, kind="stable")[:WORDS] if row[i] > 0]
            for cluster, row in zip(clusters, weights, strict=True)}


def _informative(x: np.ndarray, labels: np.ndarray, features: Sequence[Feature]) -> list[int]:
    means = np.stack([x[labels == cluster].mean(0) for cluster in np.unique(labels)])
    sizes = np.unique(labels, return_counts=True)[1]
    explained = sizes @ np.square(means - x.mean(0)) / np.maximum(x.var(0) * len(x), 1e-300)
    order = np.argsort(-explained, kind="stable")
    return [i for i in order if features[i].kind != "topic" and x[:, i].std() > 0][:MAX_FEATURES]


def _rule(x: np.ndarray, inside: np.ndarray, chosen: Sequence[int]) -> list[Condition]:
    """Add the condition that raises F1 most until none does."""
    rule: list[Condition] = []
    covered, score = np.ones(len(x), bool), 0.0
    candidates = [condition for i in chosen for condition in _candidates(x[:, i], inside, i)]
    while len(rule) < MAX_CONDITIONS and candidates:
        both = [covered & condition.rows for condition in candidates]
        scores = [2 * (rows & inside).sum() / max(1, rows.sum() + inside.sum()) for rows in both]
        best = int(np.argmax(scores))
        if scores[best] < score + GAIN:
            break
        rule.append(candidates[best])
        covered, score = covered & candidates[best].rows, scores[best]
        candidates = [condition for condition in candidates
                      if condition.feature != rule[-1].feature]
    return rule


def _candidates(x: np.ndarray, inside: np.ndarray, feature: int) -> list[Condition]:
    """Return half lines and intervals that hold most of a cluster's values."""
    lows = [-np.inf, *np.unique(np.quantile(x[inside], (0.02, 0.1, 0.25), method="lower"))]
    highs = [*np.unique(np.quantile(x[inside], (0.75, 0.9, 0.98), method="higher")), np.inf]
    bounds = [(low, high) for low in lows for high in highs if low <= high]
    bounds.sort(key=lambda pair: np.isfinite(pair).sum())  # of equal ones the simplest
    return [Condition(feature, low, high, (x >= low) & (x <= high)) for low, high in bounds[1:]]


def in_words(rule: Sequence[Condition], features: Sequence[Feature]) -> str:
    phrases = [_phrase(condition, features[condition.feature]) for condition in rule]
    return ", ".join(phrases) or "like all others"


def _phrase(condition: Condition, feature: Feature) -> str:
    name, low, high = feature.name, condition.low, condition.high
    if feature.kind in ("flag", "level"):
        return name if low > YES else f"not {name}"
    if np.isinf(high):
        return f"{name} from {show_number(low, feature.kind)}"
    start = "up" if np.isinf(low) else show_number(low, feature.kind)
    return f"{name} {start} to {show_number(high, feature.kind)}"


def show_number(number: float, kind: str) -> str:
    """Write three digits, and a date for a year with a fraction."""
    if kind == "date" and 1 <= number < 9999:
        days = (number - int(number)) * 365.2425
        return f"{datetime(int(number), 1, 1) + timedelta(days=days):%Y-%m-%d}"
    return f"{float(f'{number:.3g}'):,.10g}"


def _mostly(x: np.ndarray, inside: np.ndarray, features: Sequence[Feature],
            rule: Sequence[Condition]) -> str:
    """Add levels that most of a cluster has, and more than others, to the rule."""
    shares, overall = x[inside].mean(0), x.mean(0)
    known = [condition.feature for condition in rule]
    order = [i for i in np.argsort(overall - shares, kind="stable") if features[i].kind == "level"
             and shares[i] > max(YES, COMMON * overall[i]) and i not in known]
    return "".join(f", mostly {features[i].name}" for i in order[:2])


def _words(x: np.ndarray, inside: np.ndarray, encoder: TableEncoder | None) -> str:
    """Add the words of free text that a cluster has more of than others, from their topics."""
    phrases, start, more = "", 0, x[inside].mean(0) - x.mean(0)
    for column in encoder.columns if encoder else ():
        stop = start + len(column.features)
        if isinstance(column, TextColumn):
            weights = more[start:stop] @ np.array(column.components)
            weights[[word in ENGLISH_STOP_WORDS for word in column.words]] = 0
            order = [i for i in np.argsort(-weights, kind="stable")[:WORDS]
                     if weights[i] > TELLING * weights.max()]
            if order:
                phrases += f", {column.name}: {', '.join(column.words[i] for i in order)}"
        start = stop + column.marked
    return phrases


def _values(x: np.ndarray, features: Sequence[Feature]) -> dict[str, Any]:
    """Return medians of numbers, shares of flags and the commonest levels of categories."""
    values: dict[str, Any] = {}
    commonest: dict[str, float] = {}
    for column, (name, kind, _) in zip(x.T, features, strict=True):
        category, _, level = name.partition("=")
        if kind == "level" and column.mean() > commonest.get(category, 0.0):
            commonest[category], values[category] = column.mean(), level
        elif kind in ("number", "date", "flag"):
            middle = float(column.mean() if kind == "flag" else np.median(column))
            values[name] = show_number(middle, kind) if kind == "date" else middle
    return values
