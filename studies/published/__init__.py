"""Results as their papers print them, one YAML file a table, with the protocol behind them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studies.published.table import Cell, Claim, Published, load, names

__all__ = ["Cell", "Claim", "Published", "load", "names"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from studies.published import table

    return getattr(table, name)


def __dir__() -> list[str]:
    return __all__
