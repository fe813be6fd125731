"""Data that does not fit in memory.

A file is written piece by piece and fitted by name: reclust maps it and reads batches as needed.
Data of more than half a gigabyte as float32 is streamed. benchmarks/streaming.py measures how much
memory that takes.
"""

# %%
import os

import numpy as np

from reclust import IDEC, Autoencoder
from reclust.metrics import scores

ROWS, FEATURES, KINDS, STEP = 280_000, 1_000, 4, 20_000
rng = np.random.default_rng(0)
kinds = rng.integers(0, KINDS, ROWS)
means = rng.normal(size=(KINDS, FEATURES)).astype(np.float32)

# %%
shape = (ROWS, FEATURES)
rows = np.lib.format.open_memmap("large.npy", mode="w+", dtype=np.float32, shape=shape)
for start in range(0, ROWS, STEP):
    part = kinds[start : start + STEP]
    noise = rng.standard_normal((len(part), FEATURES), dtype=np.float32)
    rows[start : start + STEP] = means[part] + 3 * noise
rows.flush()
del rows
print(f"{os.path.getsize('large.npy') / 2**30:.2f} GB on disk")

# %% [markdown]
# One epoch each and a small network, to keep this short. Otherwise it is an ordinary fit.

# %%
model = IDEC(KINDS, representation=Autoencoder(hidden=(64,)), intervention=None, batch_size=1024,
             pretrain_epochs=1, epochs=1, random_state=0)
model.fit("large.npy")
print(f"accuracy {scores(kinds, model.labels_)['accuracy']:.3f}")

# %%
os.remove("large.npy")
