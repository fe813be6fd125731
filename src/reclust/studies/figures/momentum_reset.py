"""BRB with and without a reset of the optimizer's moments of the centres."""

from .base import Recipe
from .embedding_reset import draw

RECIPE = Recipe("momentum-reset", ("momentum-reset",), draw, "Accuracy with and without the momentum reset.")
