"""Representations, which turn samples into embeddings."""

from .autoencoder import Autoencoder, Embeddings, EncoderDecoder, OwnAutoencoder
from .base import Representation, build_network
from .contrastive import Contrastive, EncoderProjector, OwnSimCLR, SimCLR, nt_xent
from .convert import convert
from .convolutional import ConvAutoencoder
from .neighbors import Neighbors
from .resnet import Backbone, ResNet

__all__ = [
    "Autoencoder", "Backbone", "Contrastive", "ConvAutoencoder", "Embeddings", "EncoderDecoder",
    "EncoderProjector", "Neighbors", "OwnAutoencoder", "OwnSimCLR", "Representation", "ResNet",
    "SimCLR", "build_network", "convert", "nt_xent"]
