"""A table as it comes: numbers, categories, dates and missing values."""

import numpy as np
import pandas as pd

from reclust import Reclust

rng, kind = np.random.default_rng(0), np.arange(300) % 3
table = pd.DataFrame({
    "spent": np.exp(rng.normal(np.array([3.0, 5.0, 4.0])[kind], 0.3)),
    "channel": np.array(["app", "shop", "web"])[kind],
    "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.normal(300 * kind, 60), unit="D")})
table.loc[::20, "spent"] = np.nan
model = Reclust(n_clusters=3, random_state=0).fit(table)
print(model.describe(table)[["size", "description"]])
