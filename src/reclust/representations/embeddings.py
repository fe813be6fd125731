"""For samples that are embeddings already: of texts, images or cells, by a model that somebody trained."""

from __future__ import annotations

from ..utils.values import value
from .autoencoder import Autoencoder


@value
class Embeddings(Autoencoder):
    """A small autoencoder, for a space that is good already: one hidden layer, and presets train it for fewer epochs."""

    hidden: tuple[int, ...] = (256,)
