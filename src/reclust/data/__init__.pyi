from .dataset import Dataset as Dataset
from .errors import DataError as DataError
from .lens import Lens as Lens
from .preprocess import (
    Prepared as Prepared,
    prepare as prepare,
)
from .reading import read as read
from .sets.load import (
    load as load,
    names as names,
)
