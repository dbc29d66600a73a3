"""The combinations that other tests take hold every pair."""

from itertools import combinations, product

import pytest

from tests.variants.pairs import every_pair


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2, 2), (25, 8, 11, 7), (6, 4, 8, 25), (1, 5, 1)])
def test_every_pair_stands_in_a_row(sizes: tuple[int, ...]) -> None:
    axes = [range(size) for size in sizes]
    rows = every_pair(*axes)
    for one, other in combinations(range(len(axes)), 2):
        found = {(row[one], row[other]) for row in rows}
        assert found == set(product(axes[one], axes[other]))
    first, second = sorted(sizes, reverse=True)[:2]
    assert len(rows) <= 1.3 * first * second
    assert len(set(rows)) == len(rows)
