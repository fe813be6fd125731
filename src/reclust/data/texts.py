"""Texts as the embeddings that a model of the user's makes of them."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from textwrap import shorten
from typing import Any

import numpy as np

from .accept import SampleSet, accept
from .errors import DataError

LOOKED_AT, EXCERPT = 100, 80  # texts that tell what X holds; letters by which a text is named


def is_texts(X: Any) -> bool:
    """Tell lists, arrays and Series of texts, some of which may be missing, from other samples."""
    sequence = isinstance(X, (list, tuple, np.ndarray)) or type(X).__name__ == "Series"
    return sequence and getattr(X, "ndim", 1) == 1 and any(
        isinstance(text, str) for text in islice(X, LOOKED_AT))


def accept_texts(X: Iterable[Any], embed: Any, *, min_samples: int = 1) -> SampleSet:
    """Embed texts by a function or by the method `encode` of a model; missing ones are empty."""
    if embed is None:
        raise DataError("X holds texts. Pass what embeds them, a function or a model with `encode`,"
                        " as fit(X, embed=…); files do not hold it, so load(path, embed=…) too.")
    texts = [text if isinstance(text, str) else "" for text in X]
    if isinstance(embed, str) or not callable(encode := getattr(embed, "encode", embed)):
        raise DataError(f"embed={embed!r} is neither a function nor a model with `encode`.")
    samples = accept(encode(texts), min_samples=min_samples)
    if samples.array.shape != (len(texts), samples.n_features):
        raise DataError(f"embed returned shape {samples.array.shape} for {len(texts)} texts.")
    names = [shorten(text, EXCERPT, placeholder=" …") for text in texts]
    return replace(samples, ids=np.array(names, dtype=object), texts=texts)
