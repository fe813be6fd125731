"""Deployment: one file that labels new rows, and notices when they change."""

from sklearn.datasets import make_blobs

from reclust import Reclust, load

X, _ = make_blobs(600, 8, centers=4, cluster_std=2.0, random_state=1)
Reclust(n_clusters=4, random_state=0).fit(X[:500]).save("model.reclust")

model = load("model.reclust")
print(model.predict(X[500:501]), model.predict_proba(X[500:501]).max())
for new in (X[500:], X[500:] + 3):
    changes = model.drift(new)
    print(list(changes.index[changes["adjusted"] < 0.01]))
