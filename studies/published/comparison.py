"""Does the order of two numbers in a paper come out here as well?"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, variance
from typing import TYPE_CHECKING, Literal

from store.aggregate import Interval, t_interval, t_quantile
from studies.published.table import Cell, Claim, Measure, Published

if TYPE_CHECKING:
    from studies.analysis.results import Arm, StudyResults


Outcome = Literal["agrees", "disagrees", "cannot tell"]
LEVEL = 0.95


@dataclass(frozen=True)
class Ours:
    """What our runs of one arm say on one row, in the unit of the table.

    Args:
        values: One a seed, of those that have one.
        runs: How many seeds there are, with those that failed, diverged, or are still to come.
        fit: Mean skill at the longest trained length, where there is one.
        learned: Whether that says that it has learned, or need not be asked, since no longer
            length is tested.
    """

    values: Sequence[float]
    runs: int
    fit: float | None = None
    learned: bool = True

    @property
    def whole(self) -> bool:
        """Can something be said: has it learned, and has each of several seeds a value?"""
        return self.learned and 1 < self.runs == len(self.values)

    @property
    def highest(self) -> float | None:
        """The maximum over seeds."""
        return max(self.values, default=None)


@dataclass(frozen=True)
class Pair:
    """Two arms of one row; in the source `first` is above `second`, or alike.

    Args:
        alike: Whether the source has them alike, rather than `first` above.
        difference: Ours, first less second, with an interval that holds for all pairs together.
        outcome: Whether ours agrees.
        by_maximum: The same by the maxima over seeds, where that is what the source shows.
    """

    row: str
    first: str
    second: str
    alike: bool
    difference: Interval | None
    outcome: Outcome
    by_maximum: Outcome | None = None


def pairs_of(table: Published, ours: dict[tuple[str, str], Ours]) -> list[Pair]:
    """Every pair of arms of a row that the source separates, or has alike, and that we ran.

    Args:
        table: The source.
        ours: By (row, column).
    """
    cells = {(cell.row, cell.column): cell for cell in table.cells()}
    found = [
        (row, *ordered)
        for row in table.rows
        for columns in combinations([one for one in table.columns if (row, one) in ours], 2)
        if {(row, one) for one in columns} <= set(cells)
        and (ordered := order_of(table, *(cells[row, one] for one in columns))) is not None
    ]
    return [
        _judged(table, ours, row, first, second, alike, len(found))
        for row, first, second, alike in found
    ]


def order_of(table: Published, one: Cell, other: Cell) -> tuple[str, str, bool] | None:
    """The two columns, the higher one first, and whether the source has them alike.

    Ranges are separated where they do not overlap, by more than they may be off; means with a
    standard deviation where a 95 % interval of Welch's excludes 0; numbers alone where they differ
    by the smallest difference that counts. None: it says neither.
    """
    first, second = sorted((one, other), key=lambda cell: cell.middle, reverse=True)
    low, high = _bounds(table, first, second)
    least = table.measure.least
    if low > 0 and (first.middle - second.middle >= least or not _alone(first, second)):
        return first.column, second.column, False
    if not _alone(first, second) and -least <= low and high <= least:
        return first.column, second.column, True
    return None


def _alone(*cells: Cell) -> bool:
    """Is there neither a spread nor a range?"""
    return all(cell.value is not None and cell.spread is None for cell in cells)


def _bounds(table: Published, first: Cell, second: Cell) -> tuple[float, float]:
    """Between which values the difference of two printed numbers lies."""
    if first.spread is not None and second.spread is not None:
        n = int(table.protocol.settings["study"]["seeds"])
        around = welch(
            (first.middle, first.spread**2, n), (second.middle, second.spread**2, n), LEVEL
        )
        assert around.low is not None
        assert around.high is not None
        return around.low, around.high
    (low, high), (below, above) = _range(first), _range(second)
    off = 2 * (table.approximate or 0.0)
    return low - above - off, high - below + off


def _range(cell: Cell) -> tuple[float, float]:
    if cell.lowest is None or cell.highest is None:
        return cell.middle, cell.middle
    return cell.lowest, cell.highest


def welch(
    first: tuple[float, float, int], second: tuple[float, float, int], level: float
) -> Interval:
    r"""The difference of two means with its interval; each is (mean, variance, n).

    $\bar x - \bar y \pm t_\nu \sqrt{s_x^2 / n_x + s_y^2 / n_y}$ with the degrees of freedom ν of
    Welch and Satterthwaite, rounded down. Without any variance the interval is a point.
    """
    (mean, var, n), (other_mean, other_var, other_n) = first, second
    difference, parts = mean - other_mean, (var / n, other_var / other_n)
    total = sum(parts)
    if total == 0:
        return Interval(difference, difference, difference, n + other_n)
    below = parts[0] ** 2 / (n - 1) + parts[1] ** 2 / (other_n - 1)
    freedom = max(1, math.floor(total**2 / below + 1e-9))
    half = t_quantile((1 + level) / 2, freedom) * math.sqrt(total)
    return Interval(difference, difference - half, difference + half, n + other_n)


def difference_of(first: Ours, second: Ours, level: float = LEVEL) -> Interval | None:
    """Ours, first less second; None where a seed of either has no value."""
    if not (first.whole and second.whole):
        return None
    return welch(_moments(first.values), _moments(second.values), level)


def _moments(values: Sequence[float]) -> tuple[float, float, int]:
    return fmean(values), variance(values), len(values)


def _judged(
    table: Published,
    ours: dict[tuple[str, str], Ours],
    row: str,
    first: str,
    second: str,
    alike: bool,
    family: int,
) -> Pair:
    one, other = ours[row, first], ours[row, second]
    # Bonferroni: all intervals of a table hold at once.
    found = difference_of(one, other, 1 - (1 - LEVEL) / family)
    least = table.measure.least
    judge = same if alike else above
    by_maximum = None
    if table.measure.aggregate == "maximum":
        by_maximum = _by_maximum(one, other, alike, least)
    return Pair(row, first, second, alike, found, judge(found, least), by_maximum)


def above(difference: Interval | None, least: float) -> Outcome:
    """Is the first above the second? Told only by an interval without 0."""
    if difference is None or difference.low is None or difference.high is None:
        return "cannot tell"
    if difference.low > 0:
        return "agrees"
    return "disagrees" if difference.high < 0 else "cannot tell"


def same(difference: Interval | None, least: float) -> Outcome:
    """Are they alike? Told only by an interval inside, or outside, of ± the least that counts."""
    if difference is None or difference.low is None or difference.high is None:
        return "cannot tell"
    return within(difference, -least, least)


def within(value: Interval, low: float, high: float) -> Outcome:
    """Does an interval lie inside these bounds, outside of them, or across one?"""
    if value.low is None or value.high is None:
        return "cannot tell"
    if low <= value.low and value.high <= high:
        return "agrees"
    return "disagrees" if value.high < low or value.low > high else "cannot tell"


def _by_maximum(first: Ours, second: Ours, alike: bool, least: float) -> Outcome:
    """A maximum has no interval: only a difference that counts is told."""
    if not (first.whole and second.whole):
        return "cannot tell"
    point = max(first.values) - max(second.values)
    if alike:
        return "agrees" if abs(point) < least else "disagrees"
    if abs(point) < least:
        return "cannot tell"
    return "agrees" if point > 0 else "disagrees"


def counts(outcomes: Iterable[Outcome]) -> dict[Outcome, int]:
    """How often each outcome comes."""
    listed = list(outcomes)
    return {one: listed.count(one) for one in ("agrees", "disagrees", "cannot tell")}


STORED = {"perplexity": "nll", "gradient_norm": "last_gradient", "difference": "permutation"}
"""Under which name a metric of a table is stored, where it is another."""


def cells_of(table: Published, results: "StudyResults") -> dict[tuple[str, str], Ours]:
    """What our runs say on each row and column of the table.

    What an arm that has not learned says beyond the trained lengths is no answer to how far it
    carries.
    """
    metric = STORED.get(table.measure.metric, table.measure.metric)
    found: dict[tuple[str, str], Ours] = {}
    for task, arm in results.arms:
        if task.label in table.rows and arm.name in table.columns:
            values = [in_unit(one, table.measure) for one in seeds_of(arm, metric)]
            fit, beyond = arm.trained_skill, min(arm.tested(metric), default=0) > task.trained[1]
            learned = fit is None or not beyond or fit.mean >= task.threshold
            skill = None if fit is None else fit.mean
            found[task.label, arm.name] = Ours(values, len(arm.seeds), skill, learned)
    return found


def in_unit(value: float, measure: Measure) -> float:
    """A stored value in the unit of the table."""
    if measure.metric == "perplexity":
        return math.exp(value)
    return value * 100 if measure.unit == "percent" else value


def seeds_of(arm: "Arm", metric: str, lengths: Sequence[int] = ()) -> list[float]:
    """One value a seed: the mean over the tested lengths; no value where one of them has none."""
    asked = tuple(lengths) or arm.tested(metric)
    return arm.measured(metric, asked) if asked else []


@dataclass(frozen=True)
class Tried:
    """A claim with our number: the mean over seeds with its interval, and whether it agrees."""

    claim: Claim
    ours: Interval | None
    outcome: Outcome


def claims_of(table: Published, results: "StudyResults") -> list[Tried]:
    """Every claim of the table that our runs can speak to."""
    return [
        tried
        for claim in table.claims
        if claim.metric is not None and (tried := _tried(claim, results)) is not None
    ]


def _tried(claim: Claim, results: "StudyResults") -> Tried | None:
    names = [name for name in (claim.column, claim.against) if name is not None]
    arms = [results.arm(claim.panel or "", name) for name in names]
    metric, lengths = claim.metric or "", claim.lengths
    ours = [Ours(seeds_of(arm, metric, lengths), len(arm.seeds)) for arm in arms if arm is not None]
    if len(ours) < len(arms):
        return None
    if not all(one.whole for one in ours):
        return Tried(claim, None, "cannot tell")
    interval = t_interval(ours[0].values) if len(ours) == 1 else difference_of(ours[0], ours[1])
    if interval is None:
        return Tried(claim, None, "cannot tell")
    return Tried(claim, interval, within(interval, claim.low, claim.high))
