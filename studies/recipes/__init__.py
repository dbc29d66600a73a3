"""What practitioners say, one small study each: a YAML file holds a claim and how it is tested."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studies.recipes.recipe import RECIPES, Claim, claim_of

__all__ = ["RECIPES", "Claim", "claim_of"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from studies.recipes import recipe

    return getattr(recipe, name)


def __dir__() -> list[str]:
    return __all__
