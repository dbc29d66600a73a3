"""Recipes: studies in the YAML files here, each of a claim that practitioners repeat.

A recipe is a study as `studies.experiment.study_file` reads it; its first hypothesis is the claim.
"""

from dataclasses import dataclass
from pathlib import Path

from studies.experiment.collection import Collection

RECIPES = Collection(Path(__file__).parent, "recipe", "studies.recipes")


@dataclass(frozen=True)
class Claim:
    """The subject of a recipe: a claim in one sentence, its source, what varies, what it costs."""

    recipe: str
    sentence: str
    source: str
    variable: str
    cost: str


def claim_of(name: str) -> Claim:
    """The claim of a recipe, without checking its study.

    Raises:
        UnknownNameError: If there is no recipe of this name.
    """
    from registry.yaml_file import read_yaml

    data = read_yaml(RECIPES.file(name))
    variable = data["variable"]
    return Claim(
        name,
        data["study"]["hypotheses"][0]["claim"],
        data["source"],
        variable if isinstance(variable, str) else ", ".join(variable),
        data["budgets"]["quick"]["about"],
    )
