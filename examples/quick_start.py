"""Quick start: cluster scikit-learn's digits.

Fit, look, compare with k-means, report, save.
"""

# %%
from sklearn.datasets import load_digits

import reclust
from reclust import IDEC
from reclust.metrics import scores

X, y = load_digits(return_X_y=True)

# %% [markdown]
# The rows are images, and a slightly turned digit is the same digit: saying both helps most. `y` is only used to score.

# %%
model = IDEC(n_clusters=10, image_shape=(8, 8), augment="affine", random_state=0).fit(X)

# %%
for name, labels in (("IDEC with BRB", model.labels_), ("k-means", model.baseline_.labels_)):
    print(f"{name:14}", {score: round(value, 3) for score, value in scores(y, labels).items()})

# %% [markdown]
# What a fit leaves behind: labels, centres and embeddings in the learned space, and how sure it is of each sample.

# %%
sure = model.predict_proba(X).max(axis=1)
print("sizes", [int((model.labels_ == cluster).sum()) for cluster in range(model.n_clusters_)])
print("embeddings", model.transform(X).shape, " least sure of rows", sure.argsort()[:5])
print("resets before epochs", model.history_["clustering"]["fired"].epochs)

# %% [markdown]
# All of it, and what to doubt, in one HTML file.

# %%
model.report("digits.html", X, y)

# %%
model.save("digits.reclust")
assert (reclust.load("digits.reclust").predict(X) == model.labels_).all()
