"""Data that does not fit in memory.

A file of rows is written piece by piece and fitted by name: reclust maps it and reads batches as it needs them. What would take
more than 1 GB as 32-bit numbers is streamed; this one is just above it. How much memory that takes: benchmarks/streaming.py.
"""

# %%
import os

import numpy as np

from reclust import IDEC, Autoencoder
from reclust.metrics import scores

ROWS, FEATURES, KINDS = 280_000, 1_000, 4
rng = np.random.default_rng(0)
kinds = rng.integers(0, KINDS, ROWS)
means = rng.normal(size=(KINDS, FEATURES)).astype(np.float32)

# %%
rows = np.lib.format.open_memmap("large.npy", mode="w+", dtype=np.float32, shape=(ROWS, FEATURES))
for start in range(0, ROWS, 20_000):
    part = kinds[start : start + 20_000]
    rows[start : start + 20_000] = means[part] + 3 * rng.standard_normal((len(part), FEATURES), dtype=np.float32)
rows.flush()
del rows
print(f"{os.path.getsize('large.npy') / 2**30:.2f} GB on disk")

# %% [markdown]
# One epoch each and a small network, so that this ends soon; nothing else differs from a fit in memory.

# %%
model = IDEC(KINDS, representation=Autoencoder(hidden=(64,)), intervention=None, batch_size=1024, pretrain_epochs=1, epochs=1,
             random_state=0)
model.fit("large.npy")
print(f"accuracy {scores(kinds, model.labels_)['accuracy']:.3f}")

# %%
os.remove("large.npy")
