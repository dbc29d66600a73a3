"""Recipes: every file is a study that can be done, and says what it is about."""

import pytest

from registry.errors import UnknownNameError
from studies.experiment.contrasts import why_not_asked
from studies.experiment.draft import Draft
from studies.experiment.load import Typed, load_draft
from studies.recipes import RECIPES, claim_of
from tests.messages import Messages


def planned(name: str, budget: str) -> Draft:
    return load_draft(RECIPES.read(name), Typed(budget))


def test_there_are_recipes() -> None:
    assert len(RECIPES.names()) >= 20
    assert RECIPES.names() == sorted(RECIPES.names())


@pytest.mark.parametrize("name", RECIPES.names())
def test_a_recipe_is_a_study_of_its_name_whose_claims_can_be_asked(name: str) -> None:
    """Every arm on every panel fits, one thing changes in each contrast, enough seeds decide."""
    draft = planned(name, "quick")

    assert (draft.study.name, draft.study.program) == (name, f"python -m studies.recipes {name}")
    claims = draft.settings.study.hypotheses
    assert claims
    assert [why_not_asked(draft, claim) for claim in claims] == [""] * len(claims)
    assert {claim.arm for claim in claims} | {claim.against for claim in claims} <= set(draft.arms)
    assert draft.settings.study.seeds >= 5


@pytest.mark.parametrize("name", RECIPES.names())
def test_a_recipe_says_its_claim_in_a_sentence_with_its_source(name: str) -> None:
    claim = claim_of(name)

    assert claim.sentence[0].isupper()
    assert claim.sentence.count(".") - claim.sentence.count("0.") == 1
    assert claim.sentence.endswith(".")
    assert "arXiv:" in claim.source
    assert claim.cost.endswith(("CPU seconds", "CPU minutes"))
    assert claim.source in RECIPES.read(name).text


def test_smoke_is_short_and_standard_has_more_seeds() -> None:
    smoke, quick, standard = (
        planned("residual_stream", budget) for budget in ("smoke", "quick", "standard")
    )

    steps = [
        [draft.config(cell).training.steps for cell in draft.cells()]
        for draft in (smoke, quick, standard)
    ]
    assert max(steps[0]) < 10
    assert steps[1] == steps[2]
    assert [draft.settings.study.seeds for draft in (smoke, quick, standard)] == [2, 5, 16]
    # What a panel changes holds in every budget.
    assert [draft.config(draft.cells()[-1]).encoder.n_layers for draft in (smoke, quick)] == [6, 6]  # type: ignore[union-attr]


def test_an_unknown_recipe_is_told_with_the_nearest(messages: Messages) -> None:
    with messages.raises(UnknownNameError):
        RECIPES.read("head_with")
