"""The floors of the built-in tasks, against enumeration, sampling and published figures."""

from collections import defaultdict
from collections.abc import Callable, Hashable
from itertools import product

import pytest
import torch
from einops import rearrange

from studies.tasks import Floors, Task, tasks

Law = Callable[[tuple[int, ...]], float]


def uniform(row: tuple[int, ...]) -> float:
    return 1.0


def marked(alphabet: int, probability: float) -> Law:
    def law(row: tuple[int, ...]) -> float:
        marks = sum(token > alphabet for token in row)
        return probability**marks * (1 - probability) ** (len(row) - marks)

    return law


def ends(alphabet: int) -> Law:
    return lambda row: 1.0 if row[0] == row[-1] else 1 / (alphabet - 1)


def without_ties(row: tuple[int, ...]) -> float:
    twos, ones = row.count(2), row.count(1)
    if abs(twos - ones) != 2:
        return float(twos != ones)
    # One of the T equally likely places to turn leads here from each tie one token away.
    return 1.0 + max(twos, ones) / len(row)


def best(groups: dict[Hashable, dict[int, float]]) -> float:
    hits = sum(max(weights.values()) for weights in groups.values())
    return hits / sum(sum(weights.values()) for weights in groups.values())


def enumerated(task: Task, length: int, law: Law) -> Floors:
    """The exact best predictors, over all sequences of this length."""
    rows = list(product(range(1, task.vocab_size), repeat=length))
    answers = rearrange(task.solve(torch.tensor(rows)), "row ... -> row (...)").tolist()
    groups: list[dict[Hashable, dict[int, float]]] = [
        defaultdict(lambda: defaultdict(float)) for _ in range(3)
    ]
    for row, answer in zip(rows, answers, strict=True):
        for index, target in enumerate(answer):
            for group, seen in zip(groups, (0, index, tuple(sorted(row))), strict=True):
                if target != -100:
                    group[seen][target] += law(row)
    constant, by_index, bag = (best(group) for group in groups)
    return Floors(constant, by_index, bag)


CASES = [
    (name, {"alphabet": alphabet, **options}, law)
    for alphabet in (2, 3)
    for name, options, law in [
        ("shift", {"k": 1}, uniform),
        ("shift", {"k": 2}, uniform),
        ("reverse", {}, uniform),
        ("bucket_sort", {}, uniform),
        ("previous_occurrence", {}, uniform),
        ("nearest_marked", {"mark_probability": 0.3}, marked(alphabet, 0.3)),
        ("first_last_match", {}, ends(alphabet)),
    ]
] + [("majority", {}, without_ties), ("parity", {}, uniform)]


@pytest.mark.parametrize(("name", "options", "law"), CASES)
def test_floors_are_those_of_the_best_predictors(name: str, options: dict, law: Law) -> None:
    task = tasks[name](**options)
    tolerance = 0.006 if name == "first_last_match" else 1e-9
    for length in (3, 4, 5) if task.vocab_size < 6 else (3, 4):
        exact, known = enumerated(task, length, law), task.floors(length)
        assert known.constant == pytest.approx(exact.constant, abs=1e-9)
        assert known.index == pytest.approx(exact.index, abs=1e-9)
        assert known.bag == pytest.approx(exact.bag, abs=tolerance)


EXCHANGEABLE = (
    *("bucket_sort", "duplicate", "even_pairs", "majority", "multi_shift", "nearest_marked"),
    *("odds_first", "parity", "previous_occurrence", "reverse", "shift"),
)
"""Tasks of which every order of a bag is equally likely."""


@pytest.mark.parametrize("name", EXCHANGEABLE)
def test_floors_agree_with_sampling(name: str) -> None:
    task = tasks[name]()
    for length in (16, 48):
        known, sampled = task.floors(length), Task.measure_floors(task, length)
        assert sampled.constant == pytest.approx(known.constant, abs=0.03)
        assert sampled.index == pytest.approx(known.index, abs=0.03)
        assert sampled.bag == pytest.approx(known.bag, abs=0.03)


def test_the_bag_of_first_and_last_agrees_with_weighted_sampling() -> None:
    alphabet, length = 3, 12
    tokens = torch.randint(
        1, alphabet + 1, (400, length), generator=torch.Generator().manual_seed(3)
    )
    right = total = 0.0
    for row in tokens:
        pairs = [(i, j) for i in range(length) for j in range(length) if i != j]
        equal = sum(bool(row[i] == row[j]) for i, j in pairs)
        other = (len(pairs) - equal) / (alphabet - 1)
        right, total = right + max(equal, other), total + equal + other
    floor = tasks["first_last_match"](alphabet=alphabet).floors(length).bag
    assert right / total == pytest.approx(floor, abs=0.03)


def test_two_tokens_give_away_whether_they_are_equal() -> None:
    floors = tasks["first_last_match"]().floors(2)
    assert floors.bag == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(("length", "floor"), [(16, 0.659), (32, 0.751), (64, 0.823)])
def test_the_index_floor_of_bucket_sort_is_the_published_one(length: int, floor: float) -> None:
    assert tasks["bucket_sort"](alphabet=5).floors(length).index == pytest.approx(floor, abs=6e-4)


@pytest.mark.parametrize(("length", "accuracy"), [(16, 0.265), (32, 0.217), (64, 0.186)])
def test_an_encoder_without_positions_scores_the_bag_floor_of_shift(
    length: int, accuracy: float
) -> None:
    assert tasks["shift"]().floors(length).bag == pytest.approx(accuracy, abs=0.015)


@pytest.mark.parametrize("name", list(tasks))
def test_floors_are_ordered_and_kept_at_long_lengths(name: str) -> None:
    task = tasks[name]()
    length = min(500, task.max_length or 500)
    floors = task.floors(length)
    assert 0 < floors.constant <= min(floors.index, floors.bag) + 1e-12
    assert max(floors.index, floors.bag) <= 1 + 1e-9
    assert task.floors(length) is floors


@pytest.mark.parametrize("probability", [1e-6, 0.01, 0.6, 0.999])
def test_rare_and_common_marks_have_floors_too(probability: float) -> None:
    task = tasks["nearest_marked"](mark_probability=probability)
    bags = [task.floors(length).bag for length in (2, 20, 300)]
    assert all(0.125 < bag <= 1 + 1e-9 for bag in bags)
    assert bags == sorted(bags, reverse=True)
