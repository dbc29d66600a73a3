"""No difference where there is none: families of contrasts between arms that are one and the same.

Of families without any difference at most 5 % may claim one. Every family here is a whole study:
each arm tunes its learning rate on a seed apart, the plan freezes 8 confirming seeds, and 4 more
are added later. The runs come from a pool that was really trained (`benchmarks/same_arm_pool.py`),
dealt to the arms anew for every family, and from distributions that look like those of studies.
"""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from studies.analysis import Arm, Frozen, Seed, Verdict, judge, seeds_needed
from studies.experiment.hypothesis import Direction, Hypothesis
from studies.experiment.plan import Cell
from studies.experiment.settings import Ties
from studies.experiment.tune import Tried, choose

POOL = Path(__file__).parents[1] / "data" / "same_arm_pool.csv"
ARMS, FROZEN, LATER = ("one", "two", "three"), 8, 4
LENGTHS = (32, 64)
TINY = 1e-6
"""So small a smallest effect that a claim is supported as soon as its interval leaves out 0."""

TIE = 0.01
"""The difference of validation nll that studies take for a tie by default."""

USUAL = 0.1
"""The smallest effect of interest that studies take by default."""


@dataclass(frozen=True)
class Run:
    """A confirming or a tuning run: its validation nll and its skill at each of `LENGTHS`."""

    nll: float
    skills: tuple[float, ...]


def pool() -> dict[float, dict[int, Run]]:
    """The trained runs by learning rate and seed."""
    found: dict[float, dict[int, Run]] = {}
    with POOL.open() as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            skills = tuple(float(row[f"skill_{length}"]) for length in LENGTHS)
            runs = found.setdefault(float(row["learning_rate"]), {})
            runs[int(row["seed"])] = Run(float(row["nll"]), skills)
    return found


def hypotheses(smallest_effect: float) -> list[Hypothesis]:
    """Every two arms at every length: six contrasts."""
    return [
        Hypothesis(
            f"{arm} {against} {length}",
            "they differ",
            *(arm, against, "panel"),
            lengths=(length,),
            direction="different",
            smallest_effect=smallest_effect,
        )
        for arm, against in combinations(ARMS, 2)
        for length in LENGTHS
    ]


def outcome(runs: list[Run]) -> Arm:
    """An arm that learned, with these confirming runs."""
    seeds = {
        seed: Seed(
            "done",
            {("skill", length): skill for length, skill in zip(LENGTHS, run.skills, strict=True)},
            fit=1.0,
        )
        for seed, run in enumerate(runs)
    }
    return Arm(seeds, longest_trained=16)


Deal = Callable[[np.random.Generator], list[list[Run]]]
"""Draws the confirming runs of each arm, at the rate that the arm's tuning chose."""


def dealt(
    runs: dict[float, dict[int, Run]], generator: np.random.Generator, ties: Ties = "lowest"
) -> list[list[Run]]:
    """Deal the seeds of a pool to the arms; each tunes on its first seed, by validation nll."""
    seeds = generator.permutation(sorted(next(iter(runs.values()))))
    found: list[list[Run]] = []
    for hand in seeds.reshape(-1)[: len(ARMS) * (1 + FROZEN + LATER)].reshape(len(ARMS), -1):
        tuning, *confirming = hand.tolist()
        rate = chosen_rate({one: of_rate[tuning].nll for one, of_rate in runs.items()}, ties)
        found.append([runs[rate][seed] for seed in confirming])
    return found


def chosen_rate(nlls: Mapping[float, float], ties: Ties) -> float:
    """The rate that tuning chooses by these nlls, with the tolerance that is usual."""
    known: list[Any] = [
        SimpleNamespace(id=number, study="s", status="done") for number in range(len(nlls))
    ]
    tried = [
        Tried({"rate": rate}, [run], {run.id: nll})
        for run, (rate, nll) in zip(known, nlls.items(), strict=True)
    ]
    setting = choose(Cell(0, "task", "arm"), tried, TIE, ties).setting
    assert setting is not None
    return setting["rate"]


def families(
    deal: Deal, count: int, seed: int, smallest_effect: float = TINY
) -> Iterator[list[Verdict]]:
    """Judge this many studies of one plan, whose later seeds are there as well."""
    generator = np.random.default_rng(seed)
    asked = hypotheses(smallest_effect)
    frozen = Frozen(tuple(asked), tuple(range(FROZEN)))
    for _ in range(count):
        arms = dict(zip(ARMS, deal(generator), strict=True))
        yield judge(asked, {("panel", arm): outcome(runs) for arm, runs in arms.items()}, frozen)


@dataclass
class Claims:
    """How many families claim a difference: by a verdict, by a p-value, by an interval."""

    families: int = 0
    verdicts: int = 0
    tests: int = 0
    intervals: int = 0

    def most(self) -> int:
        """How many are to be expected at most, if 5 % claim one: the 99 % point."""
        return int(stats.binom.ppf(0.99, self.families, 0.05))


def claims(judged: Iterator[list[Verdict]]) -> Claims:
    """Count the claims of primary verdicts."""
    found = Claims()
    for verdicts in judged:
        primary = [one for one in verdicts if not one.exploratory]
        assert len(primary) == len(verdicts) - len(primary) == 6
        assert {one.n_arm for one in primary} == {FROZEN}
        found.families += 1
        found.verdicts += any(one.status == "supported" for one in primary)
        found.tests += any(one.p_holm is not None and one.p_holm <= 0.05 for one in primary)
        found.intervals += any((one.low or 0) > 0 or (one.high or 0) < 0 for one in primary)
    print(found)
    return found


def tried(*rates: float) -> dict[float, dict[int, Run]]:
    """The part of the pool that was trained at these rates."""
    return {rate: runs for rate, runs in pool().items() if rate in rates}


@pytest.mark.parametrize("count", [25, pytest.param(400, marks=pytest.mark.slow)])
def test_really_trained_runs_of_one_arm_do_not_differ(count: int) -> None:
    runs = tried(1e-3, 3e-3, 1e-2)

    found = claims(families(lambda one: dealt(runs, one), count, seed=0))

    assert max(found.verdicts, found.tests, found.intervals) <= found.most(), found


@pytest.mark.parametrize("count", [10, pytest.param(400, marks=pytest.mark.slow)])
def test_no_verdict_tells_apart_what_tuning_chose_by_chance(count: int) -> None:
    # The two highest rates are close in validation nll and not in skill at longer lengths: arms
    # that chose differently do differ a little, and only δ keeps that from being claimed.
    runs = tried(1e-2, 3e-2, 1e-1)

    found = claims(families(lambda one: dealt(runs, one), count, 0, USUAL))

    assert found.verdicts == 0, found


@pytest.mark.parametrize("count", [10, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "rates", [(1e-3, 3e-3, 1e-2), (1e-2, 3e-2, 1e-1), (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)], ids=str
)
def test_the_middle_of_near_tied_rates_keeps_equal_arms_equal(
    rates: tuple[float, ...], count: int
) -> None:
    runs = tried(*rates)

    found = claims(families(lambda one: dealt(runs, one, "middle"), count, 0))

    assert max(found.verdicts, found.tests, found.intervals) <= found.most(), found


def normal(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.normal(0.5, 0.1, shape)


def works_or_fails(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    works = generator.random(shape) < 0.6
    return np.where(works, 0.97, 0.3) + generator.normal(0, 0.02, shape)


def near_the_ceiling(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.beta(8, 0.5, shape)


def in_steps(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.integers(0, 4, shape) / 4


@pytest.mark.parametrize("count", [12, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("draw", [normal, works_or_fails, near_the_ceiling, in_steps])
def test_simulated_runs_of_one_distribution_do_not_differ(draw: Callable, count: int) -> None:
    def deal(generator: np.random.Generator) -> list[list[Run]]:
        drawn = draw(generator, (len(ARMS), FROZEN + LATER, len(LENGTHS)))
        return [[Run(0.0, tuple(skills.tolist())) for skills in arm] for arm in drawn]

    found = claims(families(deal, count, seed=1))

    assert max(found.verdicts, found.tests, found.intervals) <= found.most(), found


@pytest.mark.slow
def test_a_second_look_with_more_seeds_errs_more_often_than_the_frozen_plan_alone() -> None:
    def deal(generator: np.random.Generator) -> list[list[Run]]:
        drawn = normal(generator, (len(ARMS), FROZEN + LATER, len(LENGTHS)))
        return [[Run(0.0, tuple(skills.tolist())) for skills in arm] for arm in drawn]

    count, once, either = 600, 0, 0
    for verdicts in families(deal, count, seed=5):
        looks = {one.exploratory for one in verdicts if one.status == "supported"}
        once += False in looks
        either += bool(looks)

    print(once, either, count)
    assert once <= stats.binom.ppf(0.99, count, 0.05)
    assert either > once


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("direction", "effect"),
    [("greater", USUAL), ("less", -USUAL), ("different", USUAL), ("same", USUAL)],
)
def test_an_effect_that_just_does_not_matter_is_seldom_claimed_and_seldom_denied(
    direction: Direction, effect: float, count: int
) -> None:
    # At the bound itself neither reading is right: each has half of the 5 %.
    claim = Hypothesis("bound", "at the bound", "one", "two", "panel", (32,), direction=direction)
    generator, found = np.random.default_rng(4), {"supported": 0, "refuted": 0}
    for _ in range(count):
        one, two = generator.normal(0.5, 0.08, (2, FROZEN)) + np.array([[effect], [0]])
        pair = {("panel", "one"): outcome(flat(one)), ("panel", "two"): outcome(flat(two))}
        (verdict,) = judge([claim], pair)
        if verdict.status in found:
            found[verdict.status] += 1

    print(direction, count, found)
    assert max(found.values()) <= stats.binom.ppf(0.995, count, 0.025), found


def flat(skills: np.ndarray) -> list[Run]:
    """Runs with the same skill at every length."""
    return [Run(0.0, (skill,) * len(LENGTHS)) for skill in skills.tolist()]


@pytest.mark.parametrize("count", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_a_known_difference_is_found_at_the_advertised_number_of_seeds(count: int) -> None:
    # Real runs, of which one arm's are shifted by a known effect.
    effect, delta, (rate, place) = 0.17, 0.1, (1e-2, LENGTHS.index(32))
    real = np.array([run.skills[place] for run in pool()[rate].values()])
    deviation = float(real.std(ddof=1))
    n = seeds_needed(effect, (deviation, deviation), "greater", delta)
    assert n is not None
    claim = Hypothesis("known", "it is better", "one", "two", "panel", (32,), smallest_effect=delta)
    generator, found = np.random.default_rng(2), 0
    for _ in range(count):
        drawn = generator.permutation(real)[: 2 * n]
        arms = {"one": drawn[:n] + effect, "two": drawn[n:]}
        (verdict,) = judge(
            [claim],
            {("panel", arm): outcome(flat(skills)) for arm, skills in arms.items()},
        )
        found += verdict.status == "supported"

    told = f"{found} of {count} at {n} seeds"
    print(told)
    assert found >= stats.binom.ppf(0.01, count, 0.8), told
