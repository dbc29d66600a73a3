"""Results as their papers print them, one YAML file a table, with the protocol behind them."""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from studies.published.study import study_of as study_of
    from studies.published.table import Cell as Cell
    from studies.published.table import Claim as Claim
    from studies.published.table import Published as Published
    from studies.published.table import load as load
    from studies.published.table import names as names

__getattr__, __dir__ = face(
    __name__,
    {
        "study": ["study_of"],
        "table": ["Cell", "Claim", "Published", "load", "names"],
    },
)
