"""Print a published table beside ours: the paper's number, ours, and whether the order agrees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.aggregate import Interval, t_interval
from studies.published.comparison import Ours, Pair, Tried, cells_of, claims_of, counts, pairs_of
from studies.published.study import POINT
from studies.published.table import Cell, Published, load

if TYPE_CHECKING:
    from rich.console import Console

    from studies.analysis.results import StudyResults

MARK = "†"
"""Stands behind a number of a paper that was not verified at its source."""


@dataclass(frozen=True)
class Grid:
    """A table to be printed: its header, and rows of as many texts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


Item = str | Grid


def write(console: "Console", results: "StudyResults", form: str) -> None:
    """Print the comparison, as "table" or as "markdown"."""
    one = _as_markdown if form == "markdown" else _on_console
    for item in items(load(results.plan.study), results):
        one(console, item)


def items(table: Published, results: "StudyResults") -> Iterator[Item]:
    """The comparison, line by line and table by table."""
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
    """What came out, in one or two sentences."""
    told: list[str] = []
    if pairs:
        told.append(f"Order: {_counted('pair', [one.outcome for one in pairs])}.")
        if any(one.by_maximum for one in pairs):
            highest = [one.by_maximum for one in pairs if one.by_maximum]
            told.append(f"By the maximum over seeds: {_counted('pair', highest)}.")
    if tried:
        told.append(f"Claims: {_counted('claim', [one.outcome for one in tried])}.")
    return " ".join(told) or "Nothing of this table can be compared in this call."


def _counted(what: str, outcomes: Sequence[str]) -> str:
    found = counts(outcomes)  # type: ignore[arg-type]
    many = "" if len(outcomes) == 1 else "s"
    parts = ", ".join(f"{number} {outcome}" for outcome, number in found.items())
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
        line = [column, paper(table, printed.get(column)), around(one)]
        line += [number(one.highest)] * maximum + [_fit(one)] * fits
        lines.append([*line, f"{len(one.values)} of {one.runs}"])
    yield f"**{row}**, {table.measure.unit}: {table.measure.about}"
    yield Grid(header, lines)
    yield "\n".join(_pair_lines(pairs)) or "The source separates no pair of these."


def _fit(ours: Ours) -> str:
    return number(ours.fit) + ("" if ours.learned else " (did not learn)")


def _pair_lines(pairs: Sequence[Pair]) -> Iterator[str]:
    for outcome in ("agrees", "disagrees", "cannot tell"):
        here = [one for one in pairs if one.outcome == outcome]
        if here:
            yield f"- {outcome}: {'; '.join(_joined(here))}"
    otherwise = [one for one in pairs if one.by_maximum not in (None, one.outcome)]
    if otherwise:
        told = "; ".join(
            f"{one.first} {'≈' if one.alike else '>'} {one.second}: {one.by_maximum}"
            for one in otherwise
        )
        yield f"- by the maximum over seeds otherwise: {told}"


def _joined(pairs: Sequence[Pair]) -> Iterator[str]:
    """The pairs with one sign between: a > b, c; d ≈ e."""
    for sign, alike in ((">", False), ("≈", True)):
        for first in dict.fromkeys(one.first for one in pairs if one.alike is alike):
            rest = [one.second for one in pairs if one.first == first and one.alike is alike]
            yield f"{first} {sign} {', '.join(rest)}"


CLAIMS = ("claim", "arm", "paper", "bounds", "ours (95 %)", "")


def _claim_line(tried: Tried) -> list[str]:
    claim = tried.claim
    arm = claim.column or ""
    if claim.against is not None:
        arm = f"{arm} less {claim.against}"
    mark = "" if claim.verified else MARK
    bounds = f"{number(claim.low)} to {number(claim.high)}"
    said = "n/a" if tried.ours is None else interval_text(tried.ours)
    return [claim.about, arm, number(claim.value) + mark, bounds, said, tried.outcome]


def _why(table: Published, tried: Sequence[Tried]) -> str:
    if not table.verified:
        return table.note
    return "; ".join(dict.fromkeys(one.claim.place for one in tried if not one.claim.verified))


def paper(table: Published, cell: Cell | None) -> str:
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


def _as_markdown(console: "Console", item: Item) -> None:
    if isinstance(item, str):
        print(item + "\n")
        return
    print(_cells(item.header))
    print(_cells(["---"] * len(item.header)))
    for row in item.rows:
        print(_cells(row))
    print()


def _cells(row: Sequence[str]) -> str:
    return f"| {' | '.join(one.replace('|', '/') for one in row)} |"
