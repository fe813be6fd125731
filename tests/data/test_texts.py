"""Texts are what their embeddings are, by a function or a model with `encode`."""

import numpy as np
import pytest

from reclust.data.accept import accept
from reclust.data.errors import DataError
from reclust.data.texts import accept_texts, is_texts


def lengths(texts):
    return np.array([[len(text), text.count("a")] for text in texts], dtype=float)


class Encoder:
    encode = staticmethod(lengths)


def test_texts_are_told_from_other_samples():
    pandas = pytest.importorskip("pandas")
    assert all(map(is_texts, (["a"], ("a", "b"), np.array(["a"]), np.array([None, "a"], object), pandas.Series(["a", None]))))
    assert not any(map(is_texts, ("a", [], [[1.0]], [1.0], np.zeros(3), np.array([["a"]]), pandas.DataFrame({"a": ["b"]}), {"a": 1}, pandas.Series([1.0]))))


@pytest.mark.parametrize("embed", [lengths, Encoder()], ids=["function", "model"])
def test_samples_are_the_embeddings(embed):
    texts = ["banana " * 30, "cherry", None]
    samples = accept_texts(texts, embed)
    assert (samples.array == accept(lengths([texts[0], "cherry", ""])).array).all()
    assert list(samples.texts) == [texts[0], "cherry", ""] and len(samples.ids[0]) <= 80 and samples.ids[1] == "cherry"


def test_without_an_embedding_texts_are_refused():
    with pytest.raises(DataError, match=r"fit\(X, embed=…\)"):
        accept_texts(["a", "b"], None)
