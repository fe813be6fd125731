"""Where samples come from: named sets (`load`), whatever users bring (`read`), and their preprocessing (`prepare`)."""

from .dataset import Dataset
from .errors import DataError
from .named import load, names
from .preprocess import Prepared, prepare
from .read import read

__all__ = ["DataError", "Dataset", "Prepared", "load", "names", "prepare", "read"]
