"""From what users bring to what a network sees, learned in `fit` and repeated in `predict`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data
from torch import Tensor

from .data.inputs import ResidentInputs
from .data.scaling import Scaling, identity, to_unit_range, z_score


def as_array(X: Any) -> Any:
    """Tensors and lists become arrays; everything else is left to scikit-learn's own checks."""
    if isinstance(X, Tensor):
        return X.detach().cpu().numpy()
    return np.asarray(X) if isinstance(X, (list, tuple)) else X


def check_samples(estimator: BaseEstimator, X: Any, *, reset: bool) -> np.ndarray:
    """Rows of numbers as scikit-learn checks them, or images (n, h, w) or (n, h, w, channels); at least two to fit."""
    X = as_array(X)
    if not (isinstance(X, np.ndarray) and X.ndim in (3, 4)):
        return validate_data(estimator, X, reset=reset, dtype=(np.float64, np.float32), ensure_min_samples=2 if reset else 1)
    X = check_array(X, allow_nd=True, dtype=None if X.dtype == np.uint8 else (np.float64, np.float32),
                    ensure_min_samples=2 if reset else 1)
    features = math.prod(X.shape[1:])
    if reset:
        estimator.n_features_in_ = features
    elif features != estimator.n_features_in_:
        raise ValueError(f"X has {features} features, but {type(estimator).__name__} is expecting "
                         f"{estimator.n_features_in_} features as input.")
    return X


@dataclass(frozen=True)
class Preparation:
    """Two scalings with the augmentation between them: `first` before it, `second` after it.

    Tables are standardised before (noise is measured in standard deviations), images are brought to [0, 1] before (fills
    and colours are defined there) and standardised after. image_shape: (h, w, channels), None for tables.
    """

    image_shape: tuple[int, int, int] | None
    first: Scaling
    second: Scaling

    @classmethod
    def fit(cls, X: np.ndarray, image_shape: Sequence[int] | None, *, standardize: bool) -> Preparation:
        shape = _image_shape(X, image_shape)
        if not standardize:
            return cls(shape, identity(), identity())
        if shape is None:
            return cls(None, z_score(X, identity()), identity())
        unit = to_unit_range(X)
        return cls(shape, unit, z_score(_channels_first(X, shape), unit, axes=(0, 2, 3)))

    def inputs(self, X: np.ndarray) -> ResidentInputs:
        """All of X for training."""
        samples = torch.from_numpy(self.first(self._arrange(X), np.float32))
        if self.image_shape is None:
            return ResidentInputs(samples)
        return ResidentInputs(samples, torch.from_numpy(self.second.shift), torch.from_numpy(self.second.scale))

    def network_input(self, X: np.ndarray) -> Tensor:
        """A part of X as the network sees it, (B, *sample_shape) in float64."""
        return torch.from_numpy(self.second(self.first(self._arrange(X))))

    def _arrange(self, X: np.ndarray) -> np.ndarray:
        return X if self.image_shape is None else _channels_first(X, self.image_shape)


def _channels_first(X: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    return np.moveaxis(X.reshape(len(X), *shape), -1, 1)


def _image_shape(X: np.ndarray, given: Sequence[int] | None) -> tuple[int, int, int] | None:
    if given is None:
        if X.ndim == 2:
            return None
        given = X.shape[1:]
    shape = (*given, 1) if len(given) == 2 else tuple(given)
    if len(shape) != 3 or math.prod(shape) != math.prod(X.shape[1:]):
        raise ValueError(f"image_shape={tuple(given)} must be (height, width) or (height, width, channels) with "
                         f"{math.prod(X.shape[1:])} numbers in all, as X has for each sample.")
    return shape
