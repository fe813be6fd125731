"""Texts: docstrings of three modules, embedded by TF-IDF here, or by any SentenceTransformer."""

import numpy as np
import scipy.signal
import scipy.stats
from sklearn.feature_extraction.text import TfidfVectorizer

from reclust import Reclust

modules = np.linalg, scipy.signal, scipy.stats
texts = [str(getattr(part, name).__doc__).strip() for part in modules for name in part.__all__]
embed = TfidfVectorizer(stop_words="english", min_df=3).fit(texts).transform
model = Reclust(n_clusters=3, effort="quick", random_state=0).fit(texts, embed=embed)
print(model.describe(texts)[["size", "description"]].to_string())
