"""What a search for arms may change, and what it is after."""

from typing import Annotated, Any

from pydantic import Field, Strict

from studies.design.pareto import Direction
from studies.training.settings import Count, Strictly, Whole

PARAMETERS = "parameters"
"""The objective that is the number of parameters; all others are metrics."""


Values = Annotated[tuple[Any, ...], Strict(False), Field(min_length=1)]


class Search(Strictly):
    """What is searched, and for what.

    Args:
        space: The values of each dotted key, in order.
        objectives: What is maximized or minimized: metrics at the longest trained length, as means
            over panels and seeds, or `parameters`.
        generations: How often further arms are proposed.
        size: How many at a time.
    """

    space: Annotated[dict[str, Values], Field(min_length=1)]
    objectives: Annotated[dict[str, Direction], Field(min_length=1)]
    generations: Whole = 4
    size: Count = 6
