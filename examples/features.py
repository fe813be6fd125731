"""Embeddings from another model: cluster vectors instead of raw data.

Sentence vectors, features of a pretrained vision network, principal components of cells: all are
tables of a few hundred columns. Here TF-IDF and a truncated SVD stand in for a language model, so
that nothing is downloaded.
"""

# %%
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from reclust import IDEC, Embeddings
from reclust.metrics import scores

WORDS = [
    "team match goal coach season league player score stadium final training referee",
    "oven flour sugar recipe butter bake sauce pan onion taste dinner spoon",
    "orbit rocket planet moon launch telescope star crew gravity mars probe comet",
    "bank price market loan tax budget profit share interest bond account trade",
]
COMMON = "the a new old first last one two good small day year time people place way".split()
rng = np.random.default_rng(0)
topics = rng.integers(0, len(WORDS), 800)
sentences = [" ".join([*rng.choice(WORDS[topic].split(), 4), *rng.choice(COMMON, 6)])
             for topic in topics]
print(sentences[:2])

# %%
reduce = make_pipeline(TfidfVectorizer(), TruncatedSVD(40, random_state=0), Normalizer())
vectors = reduce.fit_transform(sentences)

# %% [markdown]
# The model that made the vectors has learned the hard part: a small network and few epochs are
# enough.

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
    members = model.labels_ == cluster
    lift = np.asarray(counts[members].mean(0) - counts[~members].mean(0)).ravel()
    print(cluster, members.sum(), ", ".join(names[np.argsort(-lift)[:6]]))
