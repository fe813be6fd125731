"""Pipeline and GridSearchCV: estimators are scikit-learn's.

What is searched must be judged without labels: here by the agreement of clusters found on one half of the data with clusters
found on the other half.
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
small = Autoencoder(hidden=(64, 32))
# standardize=False: principal components come with their weight, and scaling each to the same one would raise noise to signal.
idec = IDEC(representation=small, standardize=False, batch_size=64, pretrain_epochs=10, epochs=25, random_state=0)
pipeline = make_pipeline(StandardScaler(), PCA(10), idec)


# %% [markdown]
# A fitted model labels held-out rows; a second model, fitted on those rows alone, labels them too. If the number of clusters
# fits the data, the two agree.

# %%
def stability(fitted, X_held_out, y=None):
    again = clone(fitted).fit(X_held_out)
    return adjusted_rand_score(fitted.predict(X_held_out), again.predict(X_held_out))


search = GridSearchCV(pipeline, {"idec__n_clusters": [3, 4, 5]}, scoring=stability, cv=2).fit(X)

# %%
for k, mean, spread in zip(search.cv_results_["param_idec__n_clusters"], search.cv_results_["mean_test_score"],
                           search.cv_results_["std_test_score"], strict=True):
    print(f"k = {k}: agreement {mean:.2f} ± {spread:.2f}")
print("chosen:", search.best_params_, " sizes:", np.bincount(search.best_estimator_[-1].labels_))
