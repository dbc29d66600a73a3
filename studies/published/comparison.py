"""A published table beside ours: does the order of its numbers come out here as well?"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, variance
from typing import TYPE_CHECKING, Literal

from store.aggregate import Interval, t_interval, t_quantile
from studies.published.table import POINT, Cell, Claim, Measure, Published, load

if TYPE_CHECKING:
    from rich.console import Console

    from studies.analysis.results import Arm, StudyResults


Outcome = Literal["agrees", "disagrees", "cannot tell"]
OUTCOMES: tuple[Outcome, ...] = ("agrees", "disagrees", "cannot tell")
LEVEL = 0.95

MARK = "†"
"""Stands behind a number of a paper that was not verified at its source."""


@dataclass(frozen=True)
class Ours:
    """The values of our seeds of one arm on one row, in the unit of the table.

    `runs` counts all seeds, with those that failed, diverged, or are still to come; `fit` is the
    mean skill at the longest trained length, where there is one, and `learned` whether that is
    enough, or need not be asked, since no longer length is tested.
    """

    values: Sequence[float]
    runs: int
    fit: float | None = None
    learned: bool = True

    @property
    def whole(self) -> bool:
        """Whether the arm has learned, and each of several seeds has a value."""
        return self.learned and 1 < self.runs == len(self.values)


@dataclass(frozen=True)
class Pair:
    """Two arms of one row; in the source `first` is above `second`, or they are alike.

    `difference` is ours, first less second, with an interval that holds for all pairs together;
    `by_maximum` the outcome by the maxima over seeds, where that is what the source shows.
    """

    row: str
    first: str
    second: str
    alike: bool
    difference: Interval | None
    outcome: Outcome
    by_maximum: Outcome | None = None


def pairs_of(table: Published, ours: dict[tuple[str, str], Ours]) -> list[Pair]:
    """Return every pair of arms of a row that the source separates or has alike, and we ran."""
    cells = {(cell.row, cell.column): cell for cell in table.cells()}
    ordered = [
        (row, order_of(table, *(cells[row, one] for one in columns)))
        for row in table.rows
        for columns in combinations([one for one in table.columns if (row, one) in ours], 2)
        if {(row, one) for one in columns} <= set(cells)
    ]
    found = [(row, order) for row, order in ordered if order is not None]
    return [_judged(table, ours, row, order, len(found)) for row, order in found]


def order_of(table: Published, one: Cell, other: Cell) -> tuple[str, str, bool] | None:
    """Order two columns, the higher one first; True where the source has them alike.

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
    """Return whether there is neither a spread nor a range."""
    return all(cell.value is not None and cell.spread is None for cell in cells)


def _bounds(table: Published, first: Cell, second: Cell) -> tuple[float, float]:
    """Return bounds of the difference of two printed numbers."""
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
    low, high = cell.lowest, cell.highest
    return (cell.middle, cell.middle) if low is None or high is None else (low, high)


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
    """Return ours, first less second; None where a seed of either has no value."""
    if not (first.whole and second.whole):
        return None
    return welch(_moments(first.values), _moments(second.values), level)


def _moments(values: Sequence[float]) -> tuple[float, float, int]:
    return fmean(values), variance(values), len(values)


def _judged(
    table: Published,
    ours: dict[tuple[str, str], Ours],
    row: str,
    order: tuple[str, str, bool],
    family: int,
) -> Pair:
    first, second, alike = order
    one, other, least = ours[row, first], ours[row, second], table.measure.least
    # Bonferroni: all intervals of a table hold at once.
    found = difference_of(one, other, 1 - (1 - LEVEL) / family)
    outcome = within(found, -least, least) if alike else _above(found)
    by_maximum = None
    if table.measure.aggregate == "maximum":
        by_maximum = _by_maximum(one, other, alike, least)
    return Pair(row, first, second, alike, found, outcome, by_maximum)


def _above(difference: Interval | None) -> Outcome:
    """Judge whether the first is above the second, which only an interval without 0 tells."""
    if difference is None or difference.low is None or difference.high is None:
        return "cannot tell"
    if difference.low > 0:
        return "agrees"
    return "disagrees" if difference.high < 0 else "cannot tell"


def within(value: Interval | None, low: float, high: float) -> Outcome:
    """Judge whether an interval lies inside these bounds, outside of them, or across one."""
    if value is None or value.low is None or value.high is None:
        return "cannot tell"
    if low <= value.low and value.high <= high:
        return "agrees"
    return "disagrees" if value.high < low or value.low > high else "cannot tell"


def _by_maximum(first: Ours, second: Ours, alike: bool, least: float) -> Outcome:
    """Judge by maxima, which have no interval: only a difference that counts is told."""
    if not (first.whole and second.whole):
        return "cannot tell"
    point = max(first.values) - max(second.values)
    if alike:
        return "agrees" if abs(point) < least else "disagrees"
    if abs(point) < least:
        return "cannot tell"
    return "agrees" if point > 0 else "disagrees"


def counts(outcomes: Iterable[Outcome]) -> dict[Outcome, int]:
    """Count each outcome."""
    listed = list(outcomes)
    return {one: listed.count(one) for one in OUTCOMES}


STORED = {"perplexity": "nll", "gradient_norm": "last_gradient", "difference": "permutation"}
"""Under which name a metric of a table is stored, where it is another."""


def cells_of(table: Published, results: "StudyResults") -> dict[tuple[str, str], Ours]:
    """Return our values on each row and column of the table.

    What an arm that has not learned says beyond the trained lengths is no answer to how far it
    carries.
    """
    metric = STORED.get(table.measure.metric, table.measure.metric)
    found: dict[tuple[str, str], Ours] = {}
    for task, arm in results.arms:
        if task.label in table.rows and arm.name in table.columns:
            values = [_in_unit(one, table.measure) for one in _values(arm, metric)]
            fit, beyond = arm.trained_skill, min(arm.tested(metric), default=0) > task.trained[1]
            learned = fit is None or not beyond or fit.mean >= task.threshold
            skill = None if fit is None else fit.mean
            found[task.label, arm.name] = Ours(values, len(arm.seeds), skill, learned)
    return found


def _in_unit(value: float, measure: Measure) -> float:
    """A stored value in the unit of the table."""
    if measure.metric == "perplexity":
        return math.exp(value)
    return value * 100 if measure.unit == "percent" else value


def _values(arm: "Arm", metric: str, lengths: Sequence[int] = ()) -> list[float]:
    """Return the means of the seeds over the tested lengths, where none of these lacks a value."""
    asked = tuple(lengths) or arm.tested(metric)
    return arm.measured(metric, asked) if asked else []


@dataclass(frozen=True)
class Tried:
    """A claim with our number: the mean over seeds with its interval, and whether it agrees."""

    claim: Claim
    ours: Interval | None
    outcome: Outcome


def claims_of(table: Published, results: "StudyResults") -> list[Tried]:
    """Return every claim of the table that our runs can speak to."""
    measured = (claim for claim in table.claims if claim.metric is not None)
    return [found for claim in measured if (found := _tried(claim, results)) is not None]


def _tried(claim: Claim, results: "StudyResults") -> Tried | None:
    names = [name for name in (claim.column, claim.against) if name is not None]
    arms = [results.arm(claim.panel or "", name) for name in names]
    metric, lengths = claim.metric or "", claim.lengths
    ours = [Ours(_values(arm, metric, lengths), len(arm.seeds)) for arm in arms if arm is not None]
    if len(ours) < len(arms):
        return None
    interval = None
    if all(one.whole for one in ours):
        interval = t_interval(ours[0].values) if len(ours) == 1 else difference_of(ours[0], ours[1])
    return Tried(claim, interval, within(interval, claim.low, claim.high))


# Printed: the paper's number, ours, and whether the order agrees -----------------------------


@dataclass(frozen=True)
class Grid:
    """A table to be printed: its header, and rows of as many texts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


Item = str | Grid


def write(form: str, console: "Console", results: "StudyResults") -> None:
    """Print the comparison, as "table" or as "markdown"."""
    for item in items(load(results.plan.study), results):
        if form == "markdown":
            print(_in_markdown(item))
        else:
            _on_console(console, item)


def items(table: Published, results: "StudyResults") -> Iterator[Item]:
    """Yield the comparison, line by line and table by table."""
    ours, tried = cells_of(table, results), claims_of(table, results)
    pairs = pairs_of(table, ours)
    yield f"**{table.title}** ({table.source})"
    yield verdict(pairs, tried)
    yield f"Budget {results.plan.budget}. Different from the source:"
    yield "\n".join(note for note in results.plan.notes if note.startswith(POINT))
    for row in table.rows:
        if any(here == row for here, _ in ours):
            yield from _row(table, row, ours, [pair for pair in pairs if pair.row == row])
    if tried:
        yield Grid(CLAIMS, [_claim_line(one) for one in tried])
    if not table.verified or any(not one.claim.verified for one in tried):
        yield f"{MARK} not verified at its source: {_why(table, tried)}"


def verdict(pairs: Sequence[Pair], tried: Sequence[Tried]) -> str:
    """Sum up the comparison in one or two sentences."""
    counted: list[tuple[str, str, list[Outcome]]] = [
        ("Order", "pair", [one.outcome for one in pairs]),
        ("By the maximum over seeds", "pair", [one.by_maximum for one in pairs if one.by_maximum]),
        ("Claims", "claim", [one.outcome for one in tried]),
    ]
    parts = [f"{head}: {_counted(what, found)}." for head, what, found in counted if found]
    return " ".join(parts) or "Nothing of this table can be compared in this call."


def _counted(what: str, outcomes: Sequence[Outcome]) -> str:
    many = "" if len(outcomes) == 1 else "s"
    parts = ", ".join(f"{number} {outcome}" for outcome, number in counts(outcomes).items())
    return f"of {len(outcomes)} {what}{many} {parts}".replace("agrees", "agree")


def _row(
    table: Published, row: str, ours: dict[tuple[str, str], Ours], pairs: Sequence[Pair]
) -> Iterator[Item]:
    maximum = table.measure.aggregate == "maximum"
    found = {column: ours[row, column] for column in table.columns if (row, column) in ours}
    fits = any(one.fit is not None for one in found.values())
    printed = {cell.column: cell for cell in table.cells() if cell.row == row}
    header = ["", "paper", "ours, mean (95 %)"]
    header += ["ours, maximum"] * maximum + ["skill at the longest trained"] * fits + ["seeds"]
    lines: list[list[str]] = []
    for column, one in found.items():
        line = [column, paper(printed.get(column)), around(one)]
        line += [number(max(one.values, default=None))] * maximum
        line += [number(one.fit) + ("" if one.learned else " (did not learn)")] * fits
        lines.append([*line, f"{len(one.values)} of {one.runs}"])
    yield f"**{row}**, {table.measure.unit}: {table.measure.about}"
    yield Grid(header, lines)
    yield "\n".join(_pair_lines(pairs)) or "The source separates no pair of these."


SIGNS = {False: ">", True: "≈"}
"""The sign between two arms, by whether the source has them alike."""


def _pair_lines(pairs: Sequence[Pair]) -> Iterator[str]:
    for outcome in OUTCOMES:
        here = [one for one in pairs if one.outcome == outcome]
        if here:
            yield f"- {outcome}: {'; '.join(_joined(here))}"
    otherwise = [one for one in pairs if one.by_maximum not in (None, one.outcome)]
    if otherwise:
        parts = [
            f"{one.first} {SIGNS[one.alike]} {one.second}: {one.by_maximum}" for one in otherwise
        ]
        yield f"- by the maximum over seeds otherwise: {'; '.join(parts)}"


def _joined(pairs: Sequence[Pair]) -> Iterator[str]:
    """The pairs with one sign between: a > b, c; d ≈ e."""
    for alike, sign in SIGNS.items():
        for first in dict.fromkeys(one.first for one in pairs if one.alike is alike):
            rest = [one.second for one in pairs if one.first == first and one.alike is alike]
            yield f"{first} {sign} {', '.join(rest)}"


CLAIMS = ("claim", "arm", "paper", "bounds", "ours (95 %)", "")


def _claim_line(tried: Tried) -> list[str]:
    claim = tried.claim
    arm = " less ".join(name for name in (claim.column, claim.against) if name is not None)
    mark = "" if claim.verified else MARK
    bounds = f"{number(claim.low)} to {number(claim.high)}"
    said = "n/a" if tried.ours is None else interval_text(tried.ours)
    return [claim.about, arm, number(claim.value) + mark, bounds, said, tried.outcome]


def _why(table: Published, tried: Sequence[Tried]) -> str:
    if not table.verified:
        return table.note
    return "; ".join(dict.fromkeys(one.claim.place for one in tried if not one.claim.verified))


def paper(cell: Cell | None) -> str:
    """A number as it is printed in the source, marked where it is not verified."""
    if cell is None:
        return "n/a"
    mark = "" if cell.verified else MARK
    if cell.lowest is not None and cell.highest is not None:
        if cell.lowest == cell.highest:
            return f"{cell.lowest:g}{mark}"
        return f"{cell.lowest:g} to {cell.highest:g}{mark}"
    spread = "" if cell.spread is None else f" (sd {cell.spread:g})"
    return f"{cell.middle:g}{spread}{mark}"


def around(ours: Ours) -> str:
    """The mean of ours with its interval."""
    return interval_text(t_interval(ours.values)) if ours.values else "n/a"


def interval_text(found: Interval) -> str:
    """A mean and half of its interval."""
    if found.low is None or found.high is None:
        return number(found.mean)
    return f"{number(found.mean)} ± {number((found.high - found.low) / 2)}"


def number(value: float | None) -> str:
    """Three digits that count, without trailing zeros."""
    if value is None:
        return "n/a"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _on_console(console: "Console", item: Item) -> None:
    from rich.table import Table

    if isinstance(item, str):
        console.print(item.replace("**", "") + "\n", highlight=False, markup=False)
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for index, title in enumerate(item.header):
        table.add_column(title, justify="left" if index == 0 else "right", overflow="fold")
    for row in item.rows:
        table.add_row(*row)
    console.print(table)
    console.print()


def _in_markdown(item: Item) -> str:
    if isinstance(item, str):
        return f"{item}\n"
    rows = [item.header, ["---"] * len(item.header), *item.rows]
    lines = (" | ".join(one.replace("|", "/") for one in row) for row in rows)
    return "".join(f"| {line} |\n" for line in lines)
