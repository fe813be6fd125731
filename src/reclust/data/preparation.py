"""From accepted samples to what a network sees, learned in `fit` and repeated in `predict`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..utils.exceptions import warn
from .accept import SampleSet
from .inputs import Inputs, ResidentInputs
from .lens import Lens, light_is_uneven
from .outliers import column_name, listed, some_rows, warn_about_columns
from .scaling import IDENTITY, Scaling, to_unit_range, z_score
from .streams import StreamedInputs, dense_rows

MIN_ROWS = 5
"""Fewer new rows may be unusual by chance."""
FAR = 10
"""Median distance from the mean, in standard deviations, that suggests other units."""


@dataclass(frozen=True)
class Preparation:
    """Two scalings with the augmentation between them: `first` and the lens, then `second`.

    Tables are standardised before augmentation, which adds noise in standard deviations; images are
    scaled to [0, 1] before, where fill and colours are defined, and standardised after it.
    image_shape: (h, w, channels), None for tables.
    """

    image_shape: tuple[int, int, int] | None
    first: Scaling
    second: Scaling
    lens: Lens = Lens()

    @classmethod
    def fit(cls, samples: SampleSet, *, standardize: bool, lens: Lens = Lens()) -> Preparation:
        X, shape = samples.array, samples.image_shape
        if shape is None:
            if lens != Lens():
                raise ValueError(f"{lens} needs images: pass image_shape=(height, width).")
            if not standardize:
                return cls(None, IDENTITY, IDENTITY)
            # A feature that was constant in the fit has no trained weights: it stays 0 in predict.
            scaling = z_score(X, constant=np.inf)
            warn_about_columns(X, scaling, samples.feature_names)
            return cls(None, scaling, IDENTITY)
        first = to_unit_range(X)
        if not standardize:
            return cls(shape, first, IDENTITY if lens.light == "removed" else first.inverse(), lens)
        growth = math.prod(lens.shape(*shape)) / math.prod(shape)
        second = z_score(X, cls(shape, first, IDENTITY, lens).before_augmentation,
                         axes=(0, 2, 3), growth=growth)
        return cls(shape, first, second, lens)

    @property
    def sample_shape(self) -> tuple[int, ...] | None:
        """(channels, h, w) of images as the network sees them; None for tables."""
        return None if self.image_shape is None else self.lens.shape(*self.image_shape)

    @property
    def channels(self) -> int | None:
        return None if self.image_shape is None else self.image_shape[2]

    def inputs(self, X: Any, *, limit: float = math.inf) -> Inputs:
        """Prepare all of X for training, in memory or streamed if larger than `limit` bytes."""
        shift = scale = None
        if self.image_shape is not None:
            shift, scale = torch.from_numpy(self.second.shift), torch.from_numpy(self.second.scale)

        def load(raw: np.ndarray) -> np.ndarray:
            return self.before_augmentation(raw, np.float32)

        if 4 * X.shape[0] * math.prod(self.sample_shape or X.shape[1:]) > limit:
            return StreamedInputs(X, load, shift, scale)
        return ResidentInputs(torch.from_numpy(load(dense_rows(X, slice(None)))), shift, scale)

    def network_input(self, X: np.ndarray) -> Tensor:
        """Prepare rows of X without augmentation, (B, *sample_shape) in float64."""
        return torch.from_numpy(self.second(self.before_augmentation(dense_rows(X, slice(None)))))

    def before_augmentation(self, raw: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        if self.image_shape is None:
            return self.first(raw, dtype)
        return self.lens(self.first(self._channels_first(raw), dtype))

    def _channels_first(self, raw: np.ndarray) -> np.ndarray:
        assert self.image_shape is not None
        return np.moveaxis(raw.reshape(len(raw), *self.image_shape), -1, 1)

    def warn_if_light_varies(self, X: Any) -> None:
        """Suggest a lens for colour images whose brightness varies."""
        if self.channels == 3 and light_is_uneven(
                self.first(self._channels_first(dense_rows(X, some_rows(X))))):
            warn("Brightness varies a lot between images. If objects differ in color only, "
                 f"pass lens={replace(self.lens, light='removed')} (--light removed); to keep "
                 f"brightness without this warning, pass lens={self.lens} (--light kept).")

    def warn_if_units_differ(self, samples: SampleSet) -> None:
        """Warn about new samples whose values are on another scale than those of the fit."""
        rows = dense_rows(samples.array, some_rows(samples.array))
        if self.image_shape is not None:
            low, high = self.first.shift.item(), (self.first.shift + self.first.scale).item()
            brightest, times = float(rows.max()), 10 if samples.n_samples >= 10 else 200
            if 0 < brightest < high / times or brightest > times * high > 0:
                warn(f"The brightest pixel is {brightest:g}, but the model was fitted on values "
                     f"from {low:g} to {high:g}: use the same scale, such as 0 to 255 or 0 to 1.")
        elif (self.first.scale != 1).any() and len(rows) >= MIN_ROWS:  # standardised
            far = np.flatnonzero(np.median(np.abs(self.first(rows)), axis=0) > FAR).tolist()
            names = samples.feature_names
            found = [f"{column_name(names, i)} (about {np.median(rows[:, i]):.3g}, in the fit "
                     f"{self.first.shift[i]:.3g} ± {self.first.scale[i]:.3g})" for i in far]
            if found:
                warn(f"Columns differ a lot from the fit: {listed(found)}. Use the same units.")
