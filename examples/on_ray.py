"""Your own search on Ray: one fit per number of clusters, spread over a cluster.

Needs the extra `cluster`. For studies of many runs use `reclust study run … --on ray`, which
survives lost nodes.
"""

# %%
import numpy as np
import ray
from sklearn.datasets import make_blobs

from reclust import IDEC, Autoencoder

X, _ = make_blobs(400, n_features=16, centers=4, random_state=0)
# "auto" instead of "local" joins a running cluster.
ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)


# %%
@ray.remote(num_cpus=1)  # num_gpus=0.25 lets four fits share a GPU
def fit(X: np.ndarray, k: int) -> tuple[int, float, np.ndarray]:
    model = IDEC(k, representation=Autoencoder(hidden=(64, 32)), n_init=2, batch_size=64,
                 pretrain_epochs=10, epochs=25, random_state=0).fit(X)
    return k, max(replica.score for replica in model.replicas_), model.labels_


# %% [markdown]
# The data is put into Ray's object store once, and every task reads it from there.

# %%
shared = ray.put(X)
waiting = [fit.remote(shared, k) for k in (2, 3, 4, 5)]
while waiting:
    done, waiting = ray.wait(waiting)
    k, score, labels = ray.get(done[0])
    print(f"k = {k}: stability {score:.3f}, sizes {np.bincount(labels)}")

# %%
ray.shutdown()
