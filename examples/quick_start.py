"""Quick start: cluster scikit-learn's digits.

Fit, compare with k-means, write a report, save.
"""

# %%
from sklearn.datasets import load_digits

import reclust
from reclust import IDEC
from reclust.metrics import scores

X, y = load_digits(return_X_y=True)

# %% [markdown]
# The rows are images, and a slightly rotated digit is the same digit: saying both helps most.
# `y` is only used to score.

# %%
model = IDEC(n_clusters=10, image_shape=(8, 8), augment="affine", random_state=0).fit(X)

# %%
for name, labels in (("IDEC with BRB", model.labels_), ("k-means", model.baseline_.labels_)):
    print(f"{name:14}", {score: round(value, 3) for score, value in scores(y, labels).items()})

# %% [markdown]
# A fitted model has labels, centers and embeddings, and a confidence for each sample.

# %%
confidence = model.predict_proba(X).max(axis=1)
print("sizes", [int((model.labels_ == cluster).sum()) for cluster in range(model.n_clusters_)])
print("embeddings", model.transform(X).shape, " least confident rows", confidence.argsort()[:5])
print("resets before epochs", model.history_["clustering"]["fired"].epochs)

# %% [markdown]
# All of this, and what to doubt, in one HTML file.

# %%
model.report("digits.html", X, y)

# %%
model.save("digits.reclust")
assert (reclust.load("digits.reclust").predict(X) == model.labels_).all()
