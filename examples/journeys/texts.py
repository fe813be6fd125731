"""Texts: docstrings of three modules, by TF-IDF here, or by any `model.encode(texts)`."""

import numpy as np
import scipy.signal
import scipy.stats
from sklearn.feature_extraction.text import TfidfVectorizer

from reclust import Reclust

modules = np.linalg, scipy.signal, scipy.stats
texts = [str(getattr(part, name).__doc__).strip() for part in modules for name in part.__all__]
vectors = TfidfVectorizer(stop_words="english", min_df=3).fit_transform(texts)
model = Reclust(n_clusters=3, kind="embeddings", effort="quick", random_state=0).fit(vectors)
clusters = [np.flatnonzero(model.labels_ == cluster)[:3] for cluster in range(3)]
print([[texts[i].split("\n")[0] for i in members] for members in clusters])
