"""Adam for stacked replicas, each with its own gradient clipping and step count."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from itertools import chain

import torch
from torch import Tensor
from torch.optim.adam import adam

from ...utils import kernels

BETAS = (0.9, 0.999)
EPS = 1e-8


class Leaf:
    """One trained tensor (r, ...) with Adam's moments, all of which are written in place."""

    def __init__(self, value: Tensor, working: Tensor | None = None, *, decay: float = 0.0,
                 clipped: bool = True) -> None:
        self.value, self.decay, self.clipped = value.detach(), decay, clipped
        self.working = None if working is None else working.detach()  # in lower precision
        self.first, self.second = torch.zeros_like(self.value), torch.zeros_like(self.value)
        self.steps = torch.zeros(len(value), device=value.device)

    @cached_property
    def unbound(self) -> tuple[tuple[Tensor, ...], ...]:
        """Views of value, first, second and steps per replica: torch counts steps per tensor."""
        return self.value.unbind(), self.first.unbind(), self.second.unbind(), self.steps.unbind()


class Adam:
    """Adam with decoupled weight decay, as in AdamW. leaves: name -> `Leaf`."""

    def __init__(self, leaves: Mapping[str, Leaf], *, lr: float, clip_norm: float | None,
                 device: torch.device | str = "cpu") -> None:
        self.leaves, self.clip_norm = dict(leaves), clip_norm
        # A tensor, so that a captured step on a GPU follows changes of the rate.
        self.lr = torch.tensor(lr, dtype=torch.float64, device=device)
        self._triton = kernels.triton(self.lr)

    def step(self, gradients: Mapping[str, Tensor]) -> Tensor | None:
        """Move leaves along gradients (r, ...); return norms before clipping, (r,), or None."""
        clipped = [gradient for name, gradient in gradients.items() if self.leaves[name].clipped]
        squared = None if self.clip_norm is None or not clipped else kernels.squared_norms(clipped)
        moved = [(self.leaves[name], gradient) for name, gradient in gradients.items()]
        if self._triton is None:
            self._step_in_torch(moved, squared)
        else:
            torch._foreach_add_([leaf.steps for leaf, _ in moved], 1)
            groups = defaultdict(list)
            for leaf, gradient in moved:
                groups[leaf.decay, leaf.clipped and squared is not None].append(
                    (leaf.value, leaf.working, gradient, leaf.first, leaf.second, leaf.steps))
            for (decay, clip), leaves in groups.items():
                self._triton.adam_(leaves, lr=self.lr, betas=BETAS, eps=EPS, decay=decay,
                                   clip=(self.clip_norm, squared) if clip else None)
        return None if squared is None else squared.sqrt()

    @torch.no_grad()
    def _step_in_torch(self, moved: list[tuple[Leaf, Tensor]], squared: Tensor | None) -> None:
        on_gpu = self.lr.is_cuda
        moved = [(leaf, gradient.to(leaf.value.dtype)) for leaf, gradient in moved]
        if squared is not None and self.clip_norm is not None:
            factors = (self.clip_norm / (squared.sqrt() + 1e-6)).clamp(max=1)
            if on_gpu or bool((factors < 1).any()):  # this check would make a GPU wait
                for leaf, gradient in moved:
                    if leaf.clipped:
                        gradient.mul_(factors.reshape(-1, *[1] * (gradient.ndim - 1)))
        lr = self.lr.float() if on_gpu else float(self.lr)
        for leaf, _ in moved:
            if leaf.decay:
                leaf.value.mul_(1 - lr * leaf.decay)
        parts = zip(*(leaf.unbound for leaf, _ in moved), strict=True)
        values, first, second, steps = (list(chain(*part)) for part in parts)
        gradients = [part for _, gradient in moved for part in gradient.unbind()]
        adam(values, gradients, first, second, [], steps, fused=True, capturable=on_gpu,
             amsgrad=False, beta1=BETAS[0], beta2=BETAS[1], lr=lr, weight_decay=0.0, eps=EPS,
             maximize=False)
        for leaf, _ in moved:
            if leaf.working is not None:
                leaf.working.copy_(leaf.value)

    def tensors(self) -> dict[str, Tensor]:
        return {f"{part}/{name}": getattr(leaf, part)
                for name, leaf in self.leaves.items() for part in ("first", "second", "steps")}

    def restore_(self, tensors: Mapping[str, Tensor]) -> None:
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])
