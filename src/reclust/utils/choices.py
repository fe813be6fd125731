"""Names that users choose from, in the library and on the command line.

Nothing is imported here, so that `reclust --help` starts without torch.
"""

from __future__ import annotations

from typing import Literal

Precision = Literal["auto", "float32", "float64", "bf16"]

ALGORITHMS = ("dec", "idec", "dcn")
PRESETS = ("everyday", "paper", "best")
AUGMENTATIONS = ("affine", "color", "noise")
BASELINES = ("pixels", "umap", "autoencoder")
LABEL_FREE_SCORES = ("consistency", "shared_information", "silhouette", "cosine_silhouette",
                     "compactness", "size_entropy")
