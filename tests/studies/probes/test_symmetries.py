"""Symmetries: exact ones where theory has them, broken ones where it has not."""

import dataclasses
from typing import Any

import pytest
import torch

from studies.probes.symmetries import Symmetries
from tests.studies.probes.contexts import context

EXACT = 1e-12

POSITIONS: dict[str, tuple[Any, bool, bool]] = {
    # Each with whether it commutes with permutations, and with the reversal.
    "none": ("none", True, True),
    "alibi_symmetric": ({"name": "alibi", "sides": "symmetric"}, False, True),
    "alibi_half_offset": ({"name": "alibi", "sides": "half_offset"}, False, False),
    "sinusoidal": ("sinusoidal", False, False),
    "learned": ({"name": "learned", "max_length": 16}, False, False),
    "rope": ("rope", False, False),
}


def measured(task: Any = "shift", **encoder: Any) -> dict[tuple[str, int], float | None]:
    made = context(task, **encoder)
    made.model.double()
    return {(one.metric, one.length): one.value for one in Symmetries(8).measure(made)}


@pytest.mark.parametrize("name", list(POSITIONS))
@pytest.mark.parametrize("length", [7, 10])
def test_a_position_breaks_the_symmetries_that_theory_says(name: str, length: int) -> None:
    position, permutes, reflects = POSITIONS[name]
    found = measured(position=position)
    for metric, exact in (("permutation", permutes), ("reflection", reflects)):
        value = found[metric, length]
        assert value is not None
        assert (value < EXACT) == exact
        assert exact or value > 1e-3


def test_a_causal_mask_breaks_both_even_without_positions() -> None:
    found = measured(position="none", mask="causal")
    assert all(value is not None and value > 0.01 for value in found.values())


def test_a_model_that_is_read_at_one_place_should_not_change_at_all() -> None:
    found = measured("majority", position="none", readout="mean")
    assert all(value is not None and value < EXACT for value in found.values())
    found = measured("majority", position="sinusoidal", readout="mean")
    assert all(value is not None and value > 1e-3 for value in found.values())


class Counts(torch.nn.Module):
    """Says its place, whatever the token."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], dtype=torch.float64)
        return places[None, :, None].expand(*tokens.shape, 1)


class Constant(torch.nn.Module):
    """Always says the same."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.ones(*tokens.shape, 3)


def test_the_distance_is_the_one_worked_by_hand() -> None:
    # Places 0 … 6 against 6 … 0: differences of 2(t - 3), twice the spread around the mean.
    made = dataclasses.replace(context(), model=Counts())
    values = {one.metric: one.value for one in Symmetries(4).measure(made)}
    assert values["reflection"] == pytest.approx(2)
    assert values["permutation"] is not None
    assert 0 < values["permutation"] < 2


def test_a_model_that_always_says_the_same_has_no_value() -> None:
    made = dataclasses.replace(context(), model=Constant())
    assert [one.value for one in Symmetries(4).measure(made)] == [None] * 4
