"""The named studies: one for every table and figure of the paper, and what goes beyond it."""

from . import paper, contrastive, beyond  # noqa: F401, I001 - these enter their studies, and in this order they are listed
from .registry import named, names

__all__ = ["named", "names"]
