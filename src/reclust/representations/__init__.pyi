from .autoencoder import (
    Autoencoder as Autoencoder,
    Embeddings as Embeddings,
    OwnAutoencoder as OwnAutoencoder,
)
from .base import (
    Representation as Representation,
    build_network as build_network,
)
from .contrastive import (
    Contrastive as Contrastive,
    OwnSimCLR as OwnSimCLR,
    SimCLR as SimCLR,
    nt_xent as nt_xent,
)
from .convert import convert as convert
from .convolutional import ConvAutoencoder as ConvAutoencoder
from .neighbors import Neighbors as Neighbors
from .resnet import (
    Backbone as Backbone,
    ResNet as ResNet,
)
