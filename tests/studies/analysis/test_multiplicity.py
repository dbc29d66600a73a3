"""Holm's correction against examples worked by hand, and its laws."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.analysis.permutation import holm


def test_four_p_values_are_worked_by_hand() -> None:
    # Sorted .005, .01, .03, .04 times 4, 3, 2, 1: .02, .03, .06, .04; the last is raised to .06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_no_p_value_exceeds_1() -> None:
    assert holm([0.6, 0.9]) == [1.0, 1.0]


def test_ties_share_the_larger_one() -> None:
    assert holm([0.02, 0.02, 0.5]) == pytest.approx([0.06, 0.06, 0.5])


def test_what_was_not_tested_stays_in_the_family() -> None:
    assert holm([0.01, None, 0.02]) == pytest.approx([0.03, None, 0.04])


def test_an_empty_family_is_empty() -> None:
    assert holm([]) == []


p_values = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(p_values)
def test_it_rejects_what_the_step_down_procedure_rejects(p: list[float]) -> None:
    order = sorted(range(len(p)), key=lambda index: p[index])
    rejected = set()
    for rank, index in enumerate(order):
        if (len(p) - rank) * p[index] > 0.05:
            break
        rejected.add(index)

    adjusted = holm(p)

    assert {index for index, one in enumerate(adjusted) if one is not None and one <= 0.05} == (
        rejected
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_it_is_the_closed_test_of_bonferroni(p: list[float]) -> None:
    """Adjusted is the largest p-value of all sets of hypotheses that hold this one.

    That of a set is its smallest one times its size (Marcus, Peritz & Gabriel 1976).
    """
    for place, adjusted in enumerate(holm(p)):
        sets = [
            chosen
            for size in range(1, len(p) + 1)
            for chosen in combinations(range(len(p)), size)
            if place in chosen
        ]
        expected = max(min(1.0, len(one) * min(p[index] for index in one)) for one in sets)
        assert adjusted == pytest.approx(expected, abs=1e-12)
