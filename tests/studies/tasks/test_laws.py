"""Tasks of the literature against their definitions: all sequences, their answers, their odds."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import laws
import pytest
import torch
from einops import rearrange
from scipy.stats import chi2

from studies.tasks import Floors, Task, tasks

Law = Callable[..., Iterator[laws.Example]]

CASES: list[tuple[str, dict[str, Any], Law, dict[str, Any], tuple[int, ...]]] = [
    # task, options, law, options of the law, lengths
    ("even_pairs", {}, laws.even_pairs, {}, (2, 3, 6)),
    ("parity", {"answer_at": "appended"}, laws.parity, {}, (1, 5)),
    ("reverse", {"alphabet": 2, "answer_at": "appended"}, laws.reverse, {}, (2, 5)),
    ("bucket_sort", {"answer_at": "appended"}, laws.bucket_sort, {}, (2, 3)),
    ("duplicate", {}, laws.duplicate, {}, (1, 4)),
    ("duplicate", {"alphabet": 3, "times": 3}, laws.duplicate, {"alphabet": 3, "times": 3}, (3,)),
    ("odds_first", {}, laws.odds_first, {}, (1, 2, 5)),
    ("missing_duplicate", {}, laws.missing_duplicate, {}, (2, 5, 6)),
    ("missing_duplicate", {"alphabet": 3}, laws.missing_duplicate, {"alphabet": 3}, (4, 5)),
]
UNBELIEVABLE = 1e-6
"""Rare sequences fatten the tail, so the bar is low; a favoured symbol is far beyond it."""

EACH = [
    pytest.param(name, options, law, said, length, id=f"{name}-{len(options)}-{length}")
    for name, options, law, said, lengths in CASES
    for length in lengths
]


@pytest.mark.parametrize(("name", "options", "law", "said", "length"), EACH)
def test_the_solver_gives_the_answers_of_the_definition(
    name: str, options: dict[str, Any], law: Law, said: dict[str, Any], length: int
) -> None:
    rows = list(law(length, **said))
    solved = tasks[name](**options).solve(torch.tensor([tokens for tokens, _, _ in rows]))
    assert [tuple(row) for row in flat(solved)] == [targets for _, targets, _ in rows]


@pytest.mark.parametrize(("name", "options", "law", "said", "length"), EACH)
def test_sequences_come_as_often_as_the_definition_says(
    name: str, options: dict[str, Any], law: Law, said: dict[str, Any], length: int
) -> None:
    assert chance_of(tasks[name](**options), length, law(length, **said)) > UNBELIEVABLE


@pytest.mark.parametrize(("name", "options", "law", "said", "length"), EACH)
def test_floors_are_those_of_the_best_predictors(
    name: str, options: dict[str, Any], law: Law, said: dict[str, Any], length: int
) -> None:
    task = tasks[name](**options)
    exact, known = floors_of(law(length, **said)), task.floors(length)
    assert known.constant == pytest.approx(exact.constant, abs=1e-9)
    assert known.index == pytest.approx(exact.index, abs=1e-9)
    assert known.bag == pytest.approx(exact.bag, abs=SAMPLED.get(name, 1e-9))


SAMPLED: dict[str, float] = {}
"""Tasks whose bag is known through samples, and how closely."""


def test_a_favoured_symbol_is_seen() -> None:
    class Favours(tasks["missing_duplicate"]):
        def draw(self, generator: torch.Generator, batch: int, length: int) -> Any:
            symbols, answer = super().draw(generator, batch, length)
            dropped = (answer == 1) & (torch.rand(batch, generator=generator) < 0.2)
            return symbols[~dropped], answer[~dropped]

    assert chance_of(Favours(), 4, laws.missing_duplicate(4)) < UNBELIEVABLE


def test_an_answer_of_the_neighbour_is_seen() -> None:
    class Shifted(tasks["odds_first"]):
        def answer(self, symbols: torch.Tensor) -> Any:
            return super().answer(symbols).roll(1, dims=1)

    with pytest.raises(AssertionError, match="never"):
        chance_of(Shifted(), 4, laws.odds_first(4))


def chance_of(task: Task, length: int, law: Iterator[laws.Example]) -> float:
    """The chance that a sample as uneven as this one is drawn from the law."""
    expected = odds(law)
    drawn = task.sample(torch.Generator().manual_seed(5), 4000, length)
    rows = zip(drawn.tokens.tolist(), flat(drawn.targets), strict=True)
    counts = Counter((tuple(tokens), tuple(targets)) for tokens, targets in rows)
    assert counts.keys() <= expected.keys(), "a sequence or answer that never comes"
    total = counts.total()
    misfit = sum((counts[one] - total * odd) ** 2 / (total * odd) for one, odd in expected.items())
    return float(chi2.sf(misfit, len(expected) - 1))


def flat(targets: torch.Tensor) -> list[list[int]]:
    return rearrange(targets, "batch ... -> batch (...)").tolist()


def odds(examples: Iterator[laws.Example]) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    weights: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = defaultdict(float)
    for tokens, targets, weight in examples:
        weights[tokens, targets] += weight
    total = sum(weights.values())
    return {one: weight / total for one, weight in weights.items()}


def floors_of(examples: Iterator[laws.Example]) -> Floors:
    """The exact best predictors that see nothing, the index, or the bag."""
    groups: list[dict[Hashable, dict[int, float]]] = [
        defaultdict(lambda: defaultdict(float)) for _ in range(3)
    ]
    for tokens, targets, weight in examples:
        for index, target in enumerate(targets):
            for group, seen in zip(groups, (0, index, tuple(sorted(tokens))), strict=True):
                if target != laws.NONE:
                    group[seen][target] += weight
    return Floors(*map(best, groups))


def best(groups: dict[Hashable, dict[int, float]]) -> float:
    hits = sum(max(weights.values()) for weights in groups.values())
    return hits / sum(sum(weights.values()) for weights in groups.values())
