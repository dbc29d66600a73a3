"""Our numbers for the cells and the claims of a published table, from stored runs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from store.aggregate import Interval, t_interval
from studies.published.ordering import Ours, Outcome, difference_of, within
from studies.published.protocol import Claim, Measure
from studies.published.table import Published
from studies.statistics.outcomes import floor_of, with_diverged

if TYPE_CHECKING:
    from store.records import Score
    from studies.answers.answer import ArmResult

STORED = {"perplexity": "nll", "gradient_norm": "last_gradient", "difference": "permutation"}
"""Under which name a metric of a table is stored, where it is another."""


def cells_of(
    table: Published, gathered: Sequence["ArmResult"], threshold: float
) -> dict[tuple[str, str], Ours]:
    """What our runs say on each row and column of the table.

    Args:
        table: The table.
        gathered: Its runs, arm by arm.
        threshold: The skill at the longest trained length from which on an arm has learned. What
            an arm that has not says at longer lengths is no answer to how far it carries.
    """
    metric = STORED.get(table.measure.metric, table.measure.metric)
    found: dict[tuple[str, str], Ours] = {}
    for result in gathered:
        row, column = result.cell.task, result.cell.arm
        if row in table.rows and column in table.columns:
            values = [in_unit(one, table.measure) for one in seeds_of(result, metric)]
            fit = fit_of(result)
            shortest = min(_lengths(result, metric), default=0)
            learned = fit is None or shortest <= fit[0] or fit[1] >= threshold
            skill = None if fit is None else fit[1]
            found[row, column] = Ours(values, len(result.runs), skill, learned)
    return found


def in_unit(value: float, measure: Measure) -> float:
    """A stored value in the unit of the table."""
    if measure.metric == "perplexity":
        return math.exp(value)
    return value * 100 if measure.unit == "percent" else value


def seeds_of(result: "ArmResult", metric: str, lengths: Sequence[int] = ()) -> list[float]:
    """One value a seed: the mean over the tested lengths; no value where one of them has none.

    A seed that diverged counts as one that learned nothing.
    """
    asked = set(lengths) or _lengths(result, metric)
    found = (_mean(result.scores.get(run.id, ()), metric, asked) for run in result.runs)
    values = [value for value in found if value is not None]
    floors = [floor_of((metric, length), result.floors) for length in asked]
    known = [floor for floor in floors if floor is not None]
    floor = fmean(known) if known and len(known) == len(floors) else None
    return with_diverged(values, result.count("diverged"), floor)


def _lengths(result: "ArmResult", metric: str) -> set[int]:
    every = (score for scores in result.scores.values() for score in scores)
    return {score.length for score in _wanted(every, metric)}


def _wanted(scores: Iterable["Score"], metric: str) -> Iterable["Score"]:
    return (
        one
        for one in scores
        if (one.split, one.metric, one.bin) == ("test", metric, None) and one.value is not None
    )


def _mean(scores: Iterable["Score"], metric: str, lengths: set[int]) -> float | None:
    values = {one.length: one.value for one in _wanted(scores, metric)}
    if not lengths or not lengths <= set(values):
        return None
    return fmean(value for length in lengths if (value := values[length]) is not None)


def fit_of(result: "ArmResult") -> tuple[int, float] | None:
    """The longest length of validation, which is the longest trained, and the mean skill there."""
    lengths = [
        length
        for split, metric, length in result.values
        if (split, metric) == ("validation", "skill")
    ]
    interval = result.interval("skill", max(lengths), "validation") if lengths else None
    return None if interval is None else (max(lengths), interval.mean)


@dataclass(frozen=True)
class Tried:
    """A claim with our number: the mean over seeds with its interval, and whether it agrees."""

    claim: Claim
    ours: Interval | None
    outcome: Outcome


def claims_of(table: Published, gathered: Sequence["ArmResult"]) -> list[Tried]:
    """Every claim of the table that our runs can speak to."""
    return [
        tried
        for claim in table.claims
        if claim.metric is not None and (tried := _tried(claim, gathered)) is not None
    ]


def _tried(claim: Claim, gathered: Sequence["ArmResult"]) -> Tried | None:
    arms = [arm for arm in (claim.column, claim.against) if arm is not None]
    here = {one.cell.arm: one for one in gathered if one.cell.task == claim.panel}
    if not set(arms) <= set(here):
        return None
    metric = claim.metric or ""
    ours = [Ours(seeds_of(here[arm], metric, claim.lengths), len(here[arm].runs)) for arm in arms]
    if not all(one.whole for one in ours):
        return Tried(claim, None, "cannot tell")
    interval = t_interval(ours[0].values) if len(ours) == 1 else difference_of(ours[0], ours[1])
    if interval is None:
        return Tried(claim, None, "cannot tell")
    return Tried(claim, interval, within(interval, claim.low, claim.high))
