"""Where groups are computed: in this process, in several, or on a Ray cluster."""

from .base import Backend, InProcess

__all__ = ["Backend", "InProcess"]
