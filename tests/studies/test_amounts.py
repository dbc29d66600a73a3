"""Counts in words."""

import pytest

from studies.amounts import share


@pytest.mark.parametrize(
    ("count", "total", "told"),
    [(2, 3, "2 of 3 seeds"), (0, 1, "0 of 1 seed"), (1, 1, "1 of 1 seed"), (1, 2, "1 of 2 seeds")],
)
def test_a_noun_is_singular_where_there_is_one(count: int, total: int, told: str) -> None:
    assert share(count, total, "seed") == told
