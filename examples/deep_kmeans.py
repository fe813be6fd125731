"""Your own objective: deep k-means in forty lines.

Samples move toward all centers, weighted by a softmax of their distances, and centers are
learned. Written for one model, it trains stacked, with BRB, checkpoints and files like the
built-in objectives.
"""

# %%
from typing import ClassVar

import torch
from sklearn.datasets import load_digits
from torch import Tensor

from reclust import DeepClustering, value
from reclust.metrics import scores
from reclust.objectives import GradientOnly, nearest, squared_distances


# %%
@value
class DeepKMeans(GradientOnly):
    """Deep k-means; an infinite sharpness gives DCN's loss with learned centers."""

    sharpness: float = 10.0
    weight: float = 0.1
    representation_weight: float = 1.0
    trainable: ClassVar[frozenset[str]] = frozenset({"centers"})
    per_cluster: ClassVar[frozenset[str]] = frozenset({"centers"})

    def init(self, centers: Tensor) -> dict[str, Tensor]:
        return {"centers": centers.clone()}

    def loss(self, state: dict[str, Tensor], z: Tensor) -> Tensor:
        squared = squared_distances(z, state["centers"])  # (views, B, k); the first view decides
        closeness = torch.softmax(-self.sharpness * squared[0].detach(), dim=-1)
        return (closeness * squared).sum(-1).mean()

    def assign(self, state: dict[str, Tensor], z: Tensor) -> Tensor:
        return nearest(z, state["centers"])


# %%
X, y = load_digits(return_X_y=True)
for intervention in ("auto", None):
    model = DeepClustering(10, objective=DeepKMeans(), intervention=intervention,
                           image_shape=(8, 8), augment="affine", batch_size=128,
                           pretrain_epochs=0, epochs=30, random_state=0).fit(X)
    scored = {name: round(score, 3) for name, score in scores(y, model.labels_).items()}
    print("with BRB   " if intervention else "without BRB", scored)
