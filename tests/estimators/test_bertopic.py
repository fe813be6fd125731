"""BERTopic takes an estimator in place of HDBSCAN."""

import numpy as np
import pytest

from reclust import Reclust, metrics

WORDS = (("cat", "dog", "pet", "fur", "paw"), ("stock", "bond", "market", "price", "fund"), ("rain", "sun", "wind", "storm", "cloud"))


@pytest.mark.extras
def test_topics_with_probabilities_and_outliers():
    bertopic = pytest.importorskip("bertopic")
    from bertopic.dimensionality import BaseDimensionalityReduction

    rng, y = np.random.default_rng(0), np.arange(150) % 3
    texts = [" ".join(rng.choice(WORDS[i], 6)) for i in y]
    vectors = rng.normal(size=(3, 32))[y] + 0.3 * rng.normal(size=(150, 32))
    model = bertopic.BERTopic(embedding_model=None, umap_model=BaseDimensionalityReduction(), hdbscan_model=Reclust(3, effort="quick", random_state=0))
    topics, probabilities = model.fit_transform(texts, vectors)
    assert metrics.ari(y, np.array(topics)) == 1
    np.testing.assert_array_equal(probabilities, model.hdbscan_model.probabilities_)
    words = {word for word, _ in model.get_topic(topics[0])}
    assert set(WORDS[y[0]]) <= words
    assert model.transform(texts[:5], vectors[:5])[0] == topics[:5]
    unsure = np.argsort(probabilities)[:3]
    model.update_topics(texts, topics=[-1 if i in unsure else topic for i, topic in enumerate(topics)])
    assert model.get_topic_info().set_index("Topic")["Count"][-1] == 3
