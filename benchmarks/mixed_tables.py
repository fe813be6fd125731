"""`Reclust` on tables of mixed columns with planted classes, beside k-means and k-prototypes: ARI and seconds.

    pip install kmodes            k-prototypes is left out where it is not installed
    python benchmarks/mixed_tables.py

Each table has 2,000 rows of 3 to 6 classes: 5 numbers, 5 categories, dates, 5 % missing values and a column of ids. K-means gets
standardized numbers, categories as 0/1 columns that are not scaled, and medians or a level of their own for missing values.
k-prototypes gets the same numbers, and the categories as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from _records import write_record
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from reclust import Reclust, metrics

ROWS, TABLES, MISSING = 2_000, 12, 0.05


def planted(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table and its classes; how far classes differ is drawn for each table."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 7))
    y = rng.choice(k, ROWS, p=rng.dirichlet(np.full(k, 5.0)))
    contrast = rng.uniform(0.5, 2.0)
    columns: dict[str, object] = {}
    for i in range(5):
        values = rng.normal(size=k)[y] * contrast + rng.normal(size=ROWS)
        columns[f"number {i}"] = np.exp(values) if i == 0 else 10.0**i * values
    for i, levels in enumerate((2, 3, 4, 6, 10)):
        shares = rng.dirichlet(np.full(levels, 1 / contrast), size=k)
        drawn = [rng.choice(levels, p=shares[label]) for label in y]
        columns[f"category {i}"] = pd.Series([f"level {level}" for level in drawn], dtype=object)
    days = 2000 + 400 * contrast * rng.normal(size=k)[y] + 400 * rng.normal(size=ROWS)
    columns["date"] = pd.Timestamp("2015-01-01") + pd.to_timedelta(days.round(), unit="D")
    table = pd.DataFrame(columns)
    table = table.mask(rng.random(table.shape) < MISSING)
    table.insert(0, "id", [f"row {i}" for i in range(ROWS)])
    return table, y


def numbers(table: pd.DataFrame) -> np.ndarray:
    chosen = table.filter(like="number").assign(date=(table["date"] - pd.Timestamp("2000-01-01")).dt.days)
    return StandardScaler().fit_transform(chosen.fillna(chosen.median()))


def k_means(table: pd.DataFrame, k: int) -> np.ndarray:
    categories = pd.get_dummies(table.filter(like="category"), dummy_na=True).to_numpy(float)
    return KMeans(k, n_init=10, random_state=0).fit_predict(np.hstack([numbers(table), categories]))


def k_prototypes(table: pd.DataFrame, k: int) -> np.ndarray:
    from kmodes.kprototypes import KPrototypes

    categories = table.filter(like="category").fillna("missing").to_numpy()
    rows = np.hstack([numbers(table).astype(object), categories])
    last = list(range(rows.shape[1] - categories.shape[1], rows.shape[1]))
    return KPrototypes(k, n_init=3, random_state=0).fit_predict(rows, categorical=last)


METHODS: dict[str, Callable[[pd.DataFrame, int], np.ndarray]] = {
    "Reclust": lambda table, k: Reclust(k, random_state=0).fit_predict(table),
    "Reclust, quick": lambda table, k: Reclust(k, effort="quick", random_state=0).fit_predict(table),
    "k-means, 0/1 columns not scaled": k_means, "k-prototypes": k_prototypes}


def main() -> None:
    measured: dict[str, dict[str, dict[str, float]]] = {}
    for seed in range(TABLES):
        table, y = planted(seed)
        k, found = len(np.unique(y)), {}
        for method, function in METHODS.items():
            started = time.perf_counter()
            try:
                labels = function(table, k)
            except ImportError as error:
                print(f"  {method}: left out. {error}")
                continue
            found[method] = {"ari": 100 * metrics.ari(y, labels), "seconds": time.perf_counter() - started}
        measured[f"table {seed}"] = found
        print(f"table {seed}, {k} classes: " + ", ".join(f"{method} {seen['ari']:.1f} ({seen['seconds']:.1f} s)"
                                                          for method, seen in found.items()), flush=True)
    for method in found:
        print(f"{method:34} {np.mean([seen[method]['ari'] for seen in measured.values()]):.1f}")
    print(f"record: {write_record('mixed_tables', {'rows': ROWS, 'missing': MISSING}, measured)}")


if __name__ == "__main__":
    main()
