"""Augmentation of tables."""

from torch import Tensor

from ... import draws
from ...utils.values import number, value
from .affine import check_keys


@value
class SwapValues:
    """Replace a share of the values by those of another row of the batch."""

    share: float = number(default=0.2, least=0, most=1)

    def __call__(self, x: Tensor, keys: Tensor) -> Tensor:
        check_keys(x, keys, sample_dims=1)
        swapped = draws.uniform(draws.fold(keys, "swap"), x.shape[-1:]) < self.share
        return x.roll(1, -2).where(swapped, x)
