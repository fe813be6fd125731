"""Deep clustering that does not get stuck."""

import lazy_loader

from .utils.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
