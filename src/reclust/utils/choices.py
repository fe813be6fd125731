"""Names that users choose from; without torch, so that `reclust --help` starts fast."""

from typing import Literal

PrecisionName = Literal["auto", "float32", "float64", "bf16", "tf32"]

ALGORITHMS = ("dec", "idec", "dcn")
PRESETS = ("everyday", "paper", "best")
EFFORTS = ("quick", "normal", "high")
AUGMENTATIONS = ("affine", "color", "noise")
LABEL_FREE_SCORES = ("consistency", "shared_information", "silhouette", "cosine_silhouette",
                     "compactness", "size_entropy")
