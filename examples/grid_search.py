"""Pipeline and GridSearchCV: reclust's estimators work with scikit-learn's tools.

A search without labels needs a score without labels: here, how well clusters found on one half of
the data agree with clusters found on the other half.
"""

# %%
import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reclust import IDEC, Autoencoder

X, y = make_blobs(600, n_features=30, centers=4, cluster_std=4.0, random_state=1)
# Principal components should keep their scale, hence standardize=False.
idec = IDEC(representation=Autoencoder(hidden=(64, 32)), standardize=False, batch_size=64,
            pretrain_epochs=10, epochs=25, random_state=0)
pipeline = make_pipeline(StandardScaler(), PCA(10), idec)


# %% [markdown]
# The fitted model labels the held-out rows, and so does a second model that is fitted on those rows
# alone. If the number of clusters fits the data, the two agree.

# %%
def stability(fitted, X_held_out, y=None):
    again = clone(fitted).fit(X_held_out)
    return adjusted_rand_score(fitted.predict(X_held_out), again.predict(X_held_out))


search = GridSearchCV(pipeline, {"idec__n_clusters": [3, 4, 5]}, scoring=stability, cv=2).fit(X)

# %%
results = search.cv_results_
for k, mean, spread in zip(results["param_idec__n_clusters"], results["mean_test_score"],
                           results["std_test_score"], strict=True):
    print(f"k = {k}: agreement {mean:.2f} ± {spread:.2f}")
print("chosen:", search.best_params_, " sizes:", np.bincount(search.best_estimator_[-1].labels_))
