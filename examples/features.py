"""Embeddings from another model: cluster vectors, not raw data.

Sentence vectors, features of a pretrained vision network, principal components of cells: all are tables of a few hundred
columns. Here TF-IDF and a truncated SVD stand in for a language model, so that nothing is downloaded.
"""

# %%
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from reclust import IDEC, Embeddings
from reclust.metrics import scores

WORDS = {
    "sport": "team match goal coach season league player score stadium final training referee",
    "kitchen": "oven flour sugar recipe butter bake sauce pan onion taste dinner spoon",
    "space": "orbit rocket planet moon launch telescope star crew gravity mars probe comet",
    "money": "bank price market loan tax budget profit share interest bond account trade",
}
COMMON = "the a new old first last one two good small day year time people place way".split()
rng = np.random.default_rng(0)
topics = rng.integers(0, len(WORDS), 800)
sentences = [" ".join([*rng.choice(list(WORDS.values())[topic].split(), 4), *rng.choice(COMMON, 6)]) for topic in topics]
print(sentences[:2])

# %%
vectors = make_pipeline(TfidfVectorizer(), TruncatedSVD(40, random_state=0), Normalizer()).fit_transform(sentences)

# %% [markdown]
# The hard part has been learned by whoever made the vectors: a small network and few epochs are enough.

# %%
model = IDEC(4, representation=Embeddings(), random_state=0).fit(vectors)
for name, labels in (("IDEC with BRB", model.labels_), ("k-means", model.baseline_.labels_)):
    print(f"{name:14}", {score: round(value, 3) for score, value in scores(topics, labels).items()})

# %% [markdown]
# What is a cluster about? The words that are much more frequent in it than elsewhere.

# %%
vectorizer = TfidfVectorizer().fit(sentences)
counts, names = vectorizer.transform(sentences), vectorizer.get_feature_names_out()
for cluster in range(model.n_clusters_):
    own = model.labels_ == cluster
    lift = np.asarray(counts[own].mean(0) - counts[~own].mean(0)).ravel()
    print(cluster, own.sum(), ", ".join(names[np.argsort(-lift)[:6]]))
