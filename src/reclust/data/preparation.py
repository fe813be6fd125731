"""From accepted samples to what a network sees, learned in `fit` and repeated in `predict`."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..utils.exceptions import warn
from .accept import SampleSet
from .dataset import dense_rows
from .encoding import TableEncoder
from .errors import listed
from .inputs import Inputs, ResidentInputs, StreamedInputs
from .lens import Lens
from .scaling import IDENTITY, Scaling, are_components, map_chunks, to_unit_range, z_score

MIN_ROWS = 5  # fewer new rows may be unusual by chance
CPU = torch.device("cpu")
FAR = 10  # median distance from the mean, in standard deviations, that suggests other units


@dataclass(frozen=True)
class Preparation:
    """Two scalings with the augmentation between them: `first` and the lens, then `second`.

    Tables are standardized before augmentation, which adds noise in standard deviations; images are
    scaled to [0, 1] before, where fill and colors are defined, and standardized after it.
    """

    image_shape: tuple[int, int, int] | None  # (h, w, channels), None for tables
    first: Scaling
    second: Scaling
    lens: Lens = Lens()
    encoder: TableEncoder | None = None

    @classmethod
    def fit(cls, samples: SampleSet, *, standardize: bool, lens: Lens = Lens()) -> "Preparation":
        X, shape = samples.array, samples.image_shape
        if shape is None:
            if lens != Lens():
                raise ValueError(f"{lens} needs images: pass image_shape=(height, width).")
            if not standardize:
                return cls(None, IDENTITY, IDENTITY, encoder=samples.encoder)
            # A feature that was constant in the fit has no trained weights: it stays 0 in predict.
            scaling = z_score(X, constant=np.inf)
            if samples.encoder is not None:
                scales = np.array([feature.scale for feature in samples.encoder.features])
                scaling = Scaling(scaling.shift, np.where(np.isnan(scales), scaling.scale, scales))
            found = cls(None, scaling, IDENTITY, encoder=samples.encoder)
            components = samples.encoder is None and are_components(X)
            return found.scaled_together() if components else found  # small ones are mostly noise
        first = to_unit_range(X)
        if not standardize:
            back = Scaling(np.asarray(-first.shift / first.scale), np.asarray(1 / first.scale))
            return cls(shape, first, IDENTITY if lens.light == "removed" else back, lens)
        growth = math.prod(lens.shape(*shape)) / math.prod(shape)
        second = z_score(X, cls(shape, first, IDENTITY, lens).before_augmentation,
                         axes=(0, 2, 3), growth=growth)
        return cls(shape, first, second, lens)

    def scaled_together(self) -> "Preparation":
        """Divide all columns of a table by one number; constant ones stay 0."""
        shift, scale = self.first.shift, self.first.scale
        common = np.sqrt(np.square(scale[np.isfinite(scale)]).mean())
        together = Scaling(shift, np.where(np.isfinite(scale), common, scale))
        return replace(self, first=together)

    @property
    def sample_shape(self) -> tuple[int, ...] | None:
        """(channels, h, w) of images as the network sees them; None for tables."""
        return None if self.image_shape is None else self.lens.shape(*self.image_shape)

    @property
    def channels(self) -> int | None:
        return None if self.image_shape is None else self.image_shape[2]

    def inputs(self, X: Any, device: torch.device = CPU, *, limit: float = math.inf) -> Inputs:
        """Prepare all of X for training on a device, streamed if larger than `limit` bytes."""
        shift = scale = None
        if self.image_shape is not None:
            shift, scale = torch.from_numpy(self.second.shift), torch.from_numpy(self.second.scale)
        load = partial(self.before_augmentation, dtype=np.float32)
        shape = X.shape[0], *(self.sample_shape or X.shape[1:])
        if 4 * math.prod(shape) > limit:
            return StreamedInputs(X, load, shift, scale).to(device, torch.float32)
        samples = torch.empty(shape, device=device)

        def put(rows: slice) -> None:
            samples[rows] = torch.from_numpy(load(dense_rows(X, rows)))

        for _ in map_chunks(put, X, math.prod(shape[1:]) / math.prod(X.shape[1:])):
            pass
        return ResidentInputs(samples, shift, scale).to(device, torch.float32)

    def network_input(self, X: np.ndarray, device: torch.device = CPU) -> Tensor:
        """Prepare rows of X without augmentation, (B, *sample_shape) in float64."""
        raw = dense_rows(X, slice(None))
        if self.image_shape is not None:
            return torch.from_numpy(self.second(self.before_augmentation(raw))).to(device)
        x = torch.from_numpy(np.array(raw)).to(device).double()  # scaled there, which is faster
        shift, scale = (torch.from_numpy(part).to(x) for part in vars(self.first).values())
        return (x - shift) / scale

    def before_augmentation(self, raw: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        if self.image_shape is None:
            return self.first(raw, dtype)
        images = np.moveaxis(raw.reshape(len(raw), *self.image_shape), -1, 1)
        return self.lens(self.first(images, dtype))

    def warn_if_units_differ(self, samples: SampleSet) -> None:
        """Warn about new samples whose values are on another scale than those of the fit."""
        few = min(1000, max(100, 2**22 // samples.n_features))  # fewer of a wide table
        rows = dense_rows(samples.array, slice(None, None, max(1, samples.n_samples // few)))
        if self.image_shape is not None:
            low, high = self.first.shift.item(), (self.first.shift + self.first.scale).item()
            brightest, times = float(rows.max()), 10 if samples.n_samples >= 10 else 200
            if 0 < brightest < high / times or brightest > times * high > 0:
                warn(f"The brightest pixel is {brightest:g}, but the model was fitted on values "
                     f"from {low:g} to {high:g}: use the same scale, such as 0 to 255 or 0 to 1.")
        elif (self.first.scale != 1).any() and len(rows) >= MIN_ROWS:  # standardized
            far = np.flatnonzero(np.median(np.abs(self.first(rows)), axis=0) > FAR).tolist()
            names = samples.feature_names or [f"feature {i}" for i in range(rows.shape[1])]
            columns = [f"{names[i]!r} (about {np.median(rows[:, i]):.3g}, in the fit "
                       f"{self.first.shift[i]:.3g} ± {self.first.scale[i]:.3g})" for i in far]
            if columns:
                warn(f"Columns differ a lot from the fit: {listed(columns)}. Use the same units.")
