"""Customers in a DataFrame: find segments and describe them.

The table is generated: four kinds of customers, with skewed amounts and a text column.
"""

# %%
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from reclust import IDEC, Autoencoder
from reclust.metrics import scores

rng = np.random.default_rng(0)
kind = rng.integers(0, 4, 800)
table = pd.DataFrame({
    "visits": rng.poisson(np.array([2, 15, 6, 1])[kind]),
    "spent": np.exp(rng.normal(np.array([3.0, 3.5, 6.0, 5.0])[kind], 0.5)),
    "basket": rng.gamma(np.array([2, 1, 6, 9])[kind], 2.0),
    "returns": rng.poisson(np.array([0.2, 1, 0.5, 3])[kind]),
    "age": rng.normal(np.array([24, 38, 52, 45])[kind], 7),
    "channel": np.array(["app", "shop", "web"])[(kind + rng.integers(0, 2, 800)) % 3],
})
print(table.head())

# %% [markdown]
# Amounts that span powers of ten become logarithms; reclust standardizes all columns. The channel
# is only used to describe segments: one-hot encoded and standardized it would dominate them. Five
# columns need only a small network.

# %%
amounts = ["visits", "spent", "basket", "returns"]
encode = make_column_transformer((FunctionTransformer(np.log1p), amounts), ("passthrough", ["age"]))
idec = IDEC(n_clusters=4, representation=Autoencoder(hidden=(128, 64)), batch_size=64,
            augment="noise", n_init=2, random_state=0)
pipeline = make_pipeline(encode, idec).fit(table)
model = pipeline[-1]

# %%
segments = table.assign(segment=model.labels_)
print(segments.groupby("segment")[[*amounts, "age"]].median().round(1))
print(pd.crosstab(segments["segment"], segments["channel"], normalize="index").round(2))

# %% [markdown]
# Was it worth it? Every fit also runs k-means on the same columns; here the true kinds are known.

# %%
for name, labels in (("IDEC with BRB", model.labels_), ("k-means", model.baseline_.labels_)):
    print(f"{name:14} ARI {scores(kind, labels)['ari']:.3f}")

# %%
print("a new customer:", pipeline.predict(table.head(1).assign(spent=900.0, visits=4)))
