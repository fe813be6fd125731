"""How samples become embeddings."""

from .autoencoder import Autoencoder, EncoderDecoder, OwnAutoencoder
from .base import Representation, build_network

__all__ = ["Autoencoder", "EncoderDecoder", "OwnAutoencoder", "Representation", "build_network"]
