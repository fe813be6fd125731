"""BRB with and without a reset of the optimizer's moments of the centres."""

from .base import Recipe
from .embedding_reset import draw

RECIPE = Recipe("momentum-reset", ("momentum-reset",), draw, "Accuracy with and without the momentum reset, and with a "
                "reset of the step count as well. Mean and standard error; the axis does not begin at 0.")
