"""How far an arm holds, from skills that are written down."""

import pytest

from store.aggregate import Interval
from studies.analysis.results import Reach, reach


class Skills:
    """An arm with these mean skills, by split and length."""

    def __init__(self, test: dict[int, float], validation: dict[int, float] | None = None) -> None:
        self.known = {"test": test, "validation": validation or {}}

    def interval(self, metric: str, length: int, split: str = "test") -> Interval | None:
        assert metric == "skill"
        mean = self.known[split].get(length)
        return None if mean is None else Interval(mean, None, None, 1)


@pytest.mark.parametrize(
    ("arm", "told"),
    [
        (Skills({8: 0.9, 16: 0.8, 32: 0.9}), Reach(True, 32)),
        (Skills({8: 0.9, 16: 0.79, 32: 0.9}), Reach(True, 8, 16, 0.79)),
        (Skills({8: 0.9, 16: 0.8, 32: 0.1}), Reach(True, 16, 32, 0.1)),
        (Skills({8: 0.79, 16: 0.9, 32: 0.9}), Reach(False, skill=0.79)),
        (Skills({8: 0.9, 32: 0.9}), Reach(True, 8, unasked=16)),
        (Skills({16: 0.9, 32: 0.9}, {8: 0.9}), Reach(True, 32)),
        (Skills({16: 0.9, 32: 0.9}, {8: 0.2}), Reach(False, skill=0.2)),
        (Skills({16: 0.9, 32: 0.9}), Reach(None)),
    ],
    ids=[
        *("holds", "falls at once", "falls later", "did not learn", "beyond its table"),
        *("validation tells", "validation tells of no learning", "nothing at the trained length"),
    ],
)
def test_lengths_are_followed_upwards_from_the_longest_trained(arm: Skills, told: Reach) -> None:
    assert reach(arm, longest=8, lengths=(32, 4, 16), threshold=0.8) == told


def test_without_a_longer_length_it_holds_where_it_was_trained() -> None:
    assert reach(Skills({8: 0.9}), longest=8, lengths=(4, 8), threshold=0.8) == Reach(True, 8)
