"""Photos: 300 small parts of a temple's and a flower's photo."""

import numpy as np
from sklearn.datasets import load_sample_images

from reclust import Reclust

rng = np.random.default_rng(0)
corners = rng.integers(0, [395, 608], size=(300, 2))
photos = load_sample_images().images
parts = np.stack([photos[i % 2][y : y + 32, x : x + 32] for i, (y, x) in enumerate(corners)])
model = Reclust(n_clusters=4, effort="quick", random_state=0).fit(parts)
model.report("photos.html", parts)  # shows samples of each cluster
print(np.bincount(model.labels_), model.agreement_)
