"""What augmentation costs: gray views against the IDEC step they feed, color views against loops over images.

    python benchmarks/augmentation.py

The sides of a ratio are timed in turns in one run and compared by their best times, which other work on the machine
disturbs least. The loops draw and compute per image as torchvision's transforms do; they and the color views run on
one thread, as in a loader's worker. The record lies in records/, beside.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import PIL
import torch
import torch.nn.functional as F
from _records import best_times, write_record
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor, nn

from reclust import draws
from reclust.data.augmentation.affine import Affine
from reclust.data.augmentation.color import ColorViews

GREY_AT_MOST, COLOR_AT_LEAST = 0.25, 5.0


def idec_step(x: Tensor, view: Tensor, k: int = 10) -> Callable[[], None]:
    """A plain training step of IDEC on two views of a batch (B, d): autoencoder, soft assignment, Adam."""
    sizes = [x.shape[1], 1024, 512, 256, k]

    def mlp(sizes: list[int]) -> nn.Sequential:
        layers = [m for i, o in zip(sizes, sizes[1:], strict=False) for m in (nn.Linear(i, o), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    encoder, decoder = mlp(sizes), mlp(sizes[::-1])
    centers = nn.Parameter(torch.randn(k, k))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), centers], lr=1e-3)
    both = torch.cat((x, view))

    def step() -> None:
        z = encoder(both)
        q = 1 / (1 + torch.cdist(z, centers).square())
        q = q / q.sum(1, keepdim=True)
        clean = q[: len(x)].detach()
        p = clean.square() / clean.sum(0)
        p = p / p.sum(1, keepdim=True)
        loss = F.mse_loss(decoder(z), both) - 0.1 * (p.repeat(2, 1) * (q + 1e-8).log()).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def uniform(low: float = 0.0, high: float = 1.0) -> float:
    return torch.empty(1).uniform_(low, high).item()


def window() -> tuple[int, int, int, int]:
    """Top, left, height and width of a crop of 32 x 32 pixels."""
    area, aspect = 1024 * uniform(0.08, 1), math.exp(uniform(math.log(3 / 4), math.log(4 / 3)))
    h, w = (min(32, round(math.sqrt(v))) for v in (area / aspect, area * aspect))
    return int(torch.randint(33 - h, (1,))), int(torch.randint(33 - w, (1,))), h, w


def tensor_view(image: Tensor) -> Tensor:
    """One image (3, 32, 32), on tensors."""
    top, left, h, w = window()
    x = image[:, top : top + h, left : left + w]
    x = F.interpolate(x[None], (32, 32), mode="bilinear", align_corners=False)[0]
    if uniform() < 0.8:
        for kind in torch.randperm(4).tolist():
            x = (_brightness, _contrast, _saturation, _hue)[kind](x)
    if uniform() < 0.2:
        x = _grey(x).expand(3, -1, -1)
    if uniform() < 0.5:
        x = x.flip(-1)
    return torch.where(x >= 0.5, 1 - x, x) if uniform() < 0.2 else x


def _grey(x: Tensor) -> Tensor:
    return (0.2989 * x[0] + 0.587 * x[1] + 0.114 * x[2])[None]


def _blend(x: Tensor, other: Tensor, factor: float) -> Tensor:
    return (factor * x + (1 - factor) * other).clamp(0, 1)


def _brightness(x: Tensor) -> Tensor:
    return _blend(x, torch.zeros_like(x), uniform(0.6, 1.4))


def _contrast(x: Tensor) -> Tensor:
    return _blend(x, _grey(x).mean(), uniform(0.6, 1.4))


def _saturation(x: Tensor) -> Tensor:
    return _blend(x, _grey(x), uniform(0.8, 1.2))


def _hue(x: Tensor) -> Tensor:
    """RGB to HSV and back, the short way: less work than torchvision's own."""
    top, low = x.amax(0), x.amin(0)
    chroma = top - low
    safe = torch.where(chroma > 0, chroma, 1)
    r, g, b = x
    hue = torch.where(top == r, (g - b) / safe, torch.where(top == g, 2 + (b - r) / safe, 4 + (r - g) / safe))
    turned = (hue + 6 * uniform(-0.1, 0.1) + torch.tensor([5.0, 3.0, 1.0])[:, None, None]) % 6
    return top - chroma * torch.minimum(turned, 4 - turned).clamp(0, 1)


def pillow_view(array: np.ndarray) -> Tensor:
    """One image (32, 32, 3) of bytes, with Pillow."""
    top, left, h, w = window()
    x = Image.fromarray(array).crop((left, top, left + w, top + h)).resize((32, 32), Image.Resampling.BILINEAR)
    if uniform() < 0.8:
        for kind in torch.randperm(4).tolist():
            if kind == 3:
                hue, *rest = x.convert("HSV").split()
                turned = np.asarray(hue) + np.uint8(int(255 * uniform(-0.1, 0.1)) % 256)
                x = Image.merge("HSV", (Image.fromarray(turned), *rest)).convert("RGB")
            else:
                enhancer = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)[kind]
                x = enhancer(x).enhance(uniform(0.6, 1.4))
    if uniform() < 0.2:
        x = x.convert("L").convert("RGB")
    if uniform() < 0.5:
        x = ImageOps.mirror(x)
    if uniform() < 0.2:
        x = ImageOps.solarize(x, 128)
    return torch.from_numpy(np.array(x)).permute(2, 0, 1).float().div_(255)


def grey_benchmark() -> dict[str, float]:
    images = torch.rand(256, 1, 28, 28)
    keys = draws.fold(draws.key(0), torch.arange(256))
    augment = Affine()
    step = idec_step(images.flatten(1), augment(images, keys).flatten(1))
    view, whole = best_times(lambda: augment(images, keys), step, repeats=25)
    return {"augment_ms": 1e3 * view, "idec_step_ms": 1e3 * whole, "ratio": view / whole}


def color_benchmark() -> dict[str, float]:
    bytes_ = np.random.default_rng(0).integers(0, 256, (512, 32, 32, 3), dtype=np.uint8)
    images = torch.from_numpy(bytes_).permute(0, 3, 1, 2).float().div_(255).contiguous()
    keys = draws.fold(draws.key(0), torch.arange(512))
    augment = ColorViews()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    batch, tensors, pillow = best_times(
        lambda: augment(images, keys),
        lambda: torch.stack([tensor_view(image) for image in images]),
        lambda: torch.stack([pillow_view(image) for image in bytes_]),
        repeats=9,
    )
    torch.set_num_threads(threads)
    times = {"augment_ms": 1e3 * batch, "tensor_loop_ms": 1e3 * tensors, "pillow_loop_ms": 1e3 * pillow}
    return {**times, "times_faster": min(tensors, pillow) / batch}


def main() -> None:
    torch.manual_seed(0)
    grey, color = grey_benchmark(), color_benchmark()
    settings = {"grey": repr(Affine()), "color": repr(ColorViews()), "color_threads": 1, "pillow": PIL.__version__}
    measured = {
        "grey_256x1x28x28": {**grey, "required": f"ratio <= {GREY_AT_MOST}"},
        "color_512x3x32x32": {**color, "required": f"times_faster (than the faster loop) >= {COLOR_AT_LEAST}"},
    }
    print(json.dumps(measured, indent=2))
    print(f"record: {write_record('augmentation', settings, measured)}")
    if grey["ratio"] > GREY_AT_MOST or color["times_faster"] < COLOR_AT_LEAST:
        raise SystemExit("A required ratio was missed.")


if __name__ == "__main__":
    main()
