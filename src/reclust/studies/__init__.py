"""Studies: many runs, planned as one value, computed in groups, kept in one file."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
