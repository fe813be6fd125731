"""The named studies: one for every table and figure of the paper, and some beyond it."""

from . import paper, beyond  # noqa: F401, I001 - they add their studies, in this order
from .registry import named, names

__all__ = ["named", "names"]
