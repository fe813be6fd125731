"""Where samples come from: named sets (`load`), whatever users bring (`read`), and their preprocessing (`prepare`)."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .dataset import Dataset
    from .errors import DataError
    from .lens import Lens
    from .named import load, names
    from .preprocess import Prepared, prepare
    from .reading import read
else:
    __getattr__, __dir__ = lazily(__name__, {
        "dataset": "Dataset",
        "errors": "DataError",
        "lens": "Lens",
        "named": "load names",
        "preprocess": "Prepared prepare",
        "reading": "read",
    })

__all__ = ["DataError", "Dataset", "Lens", "Prepared", "load", "names", "prepare", "read"]
