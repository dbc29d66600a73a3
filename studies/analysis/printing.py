"""Print an answer: the verdicts, then panel by panel a sentence per arm and a table per metric."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from store.aggregate import Interval
from store.metrics import metric_of
from studies.analysis.phrases import cell_text, number
from studies.analysis.results import StudyResults, Task
from studies.analysis.sentences import arm_sentence, fit_times, sentence
from studies.analysis.summaries import Overall
from studies.experiment.match import Costs
from studies.experiment.plan import Plan, PlannedCell

if TYPE_CHECKING:
    from rich.console import Console

    from studies.analysis.summaries import Point
    from studies.analysis.verdicts import Verdict


SHOWN = ("skill", "accuracy", "exact")
"""The metrics of a trained task that have a table."""

COLUMN = 11
"""The widest cell, such as "-1.20±1.48", with the space after it."""


def print_verdicts(
    console: "Console", verdicts: "Sequence[Verdict]", unasked: Mapping[str, str] | None = None
) -> None:
    """Print one sentence per hypothesis; `unasked` are those without a verdict, with the reason."""
    rows = [(one.hypothesis.name, " ".join([sentence(one), *one.notes])) for one in verdicts]
    rows += [(name, f"Not judged: {why}.") for name, why in (unasked or {}).items()]
    if rows:
        _print_grid(console, rows, style="bold", max_width=28)


def _print_grid(
    console: "Console", rows: Sequence[Sequence[str]], justify: Any = "left", **first: Any
) -> None:
    """Print rows of texts side by side; `first` formats the first column."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(**first)
    for _ in rows[0][1:]:
        table.add_column(justify=justify)
    for row in rows:
        table.add_row(*row)
    console.print(table, highlight=False)


def _table(*heads: str) -> Table:
    """A table without lines, whose first column holds names and the others numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for index, head in enumerate(heads):
        table.add_column(head, justify="right" if index else "left", no_wrap=True)
    return table


def print_answer(console: "Console", results: StudyResults) -> None:
    """Print task by task: a sentence per arm, then a table per metric."""
    for task in results.tasks:
        console.print(f"\n{_protocol(task, results.plan.protocol.seeds)}", highlight=False)
        sentences = [(f"  {arm.name}", arm_sentence(task, arm)) for arm in task.arms]
        _print_grid(console, sentences, no_wrap=True, style="bold")
        if task.fit:
            _print_title(console, task.fit)
            _print_grid(console, [(f"  {arm.name}", fit_times(arm)) for arm in task.arms])
        for metric in _metrics(task):
            _print_title(console, task.title_of(metric))
            for lengths in _fitting(console, task, metric):
                _print_table(console, task, metric, lengths)
        binned = {metric for seed in task.seeds for metric, _ in seed.bins}
        if binned:  # which is too much for a table
            names = ", ".join(sorted(binned))
            console.print(f"\n  Also measured, by bin: {names} (python -m store scores)")
        if task.later_lengths:
            _print_title(console, "skill at lengths evaluated later (exploratory: in no verdict)")
            _print_table(console, task, "skill", task.later_lengths, later=True)
        _print_alternatives(console, task)


def _print_title(console: "Console", title: str, more: str = "") -> None:
    console.print(f"\n  [bold]{title}[/bold]{more}", highlight=False)


def print_front(console: "Console", results: StudyResults, front: "Sequence[Point]") -> None:
    """Print what a search found that nothing else beats in every objective at once."""
    plan, search = results.plan, results.plan.search
    if search is None:
        return
    if not front:
        wanted = ", ".join(search.objectives)
        console.print(f"\nNo Pareto front: no arm has a value for each of {wanted}.")
        return
    aims = ", ".join(f"{metric} ({aim}d)" for metric, aim in search.objectives.items())
    head = f"[bold]Pareto front[/bold]: {len(front)} of {len(plan.arms)} arms; {aims}"
    console.print(f"\n{head}", highlight=False)
    rows = [(f"  {point.arm}", *map(amount, point.values)) for point in front]
    _print_grid(console, [("", *search.objectives), *rows], justify="right", no_wrap=True)


def amount(value: float) -> str:
    """A number of any size: "12,480", ".98", "3.21"."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}".replace("0.", ".", 1)


def _print_alternatives(console: "Console", task: Task) -> None:
    """Print how far other settings carried, where one fits as well or is better on the test."""
    rows = [
        ("" if number else f"  {arm.name}", str(other))
        for arm in task.arms
        for number, other in enumerate(arm.alternatives)
    ]
    if rows:
        _print_title(console, "settings that tuning tried", " (tuning runs)")
        _print_grid(console, rows, no_wrap=True)


def _metrics(task: Task) -> list[str]:
    """The metrics with a table: those the study shows, the usual ones of a task, or all."""
    if task.has_skill:
        return list(SHOWN)
    found = {metric for seed in task.seeds for _, metric, _ in seed.places}
    return [one for one in task.titles or sorted(found) if one in found]


def _protocol(task: Task, seeds: int) -> str:
    ending = f"{seeds} seeds; mean ± half of the 95 % t-interval over seeds"
    if seeds == 1:
        ending = "1 seed, so no intervals"
    if not task.scored:
        return f"[bold]{task.label}[/bold], {ending}"
    shortest, longest = task.trained
    steps = f"{task.steps} steps on lengths {shortest} to {longest}"
    return f"[bold]{task.title}[/bold], {steps}, {ending}"


def _fitting(console: "Console", task: Task, metric: str) -> list[list[int]]:
    """The tested lengths, in groups whose columns fit side by side, so that nothing is cut."""
    measured = {length for seed in task.seeds for _, name, length in seed.places if name == metric}
    lengths = task.lengths if metric_of(metric).kind == "share" else sorted(measured)
    label = max(len(name) for name in ("length", *(arm.name for arm in task.arms))) + 4
    group = max(1, (console.width - label) // COLUMN)
    return [lengths[start : start + group] for start in range(0, len(lengths), group)]


def _print_table(
    console: "Console", task: Task, metric: str, lengths: list[int], later: bool = False
) -> None:
    table = _table("  length", *map(str, lengths))
    text = cell_text if metric_of(metric).kind == "share" else _any_number
    for arm in task.arms:
        cells = [text(arm.interval(metric, length, later=later)) for length in lengths]
        table.add_row(f"  {arm.name}", *cells)
    floors = [task.blind_guess(length) for length in lengths]
    if metric_of(metric).floor_in is not None and any(floor is not None for floor in floors):
        texts = ["n/a" if floor is None else number(floor) for floor in floors]
        table.add_row("  floor", *texts, style="dim")
    console.print(table)


def _any_number(interval: Interval | None) -> str:
    return "n/a" if interval is None else f"{interval.mean:.3g}"


HEADS = ("parameters", "FLOPs per token", "training tokens", "steps")


def cost_rows(costs: Costs | None) -> dict[str, str]:
    """The costs of a run as they are printed; empty where nothing is trained."""
    if costs is None:
        return {}
    values = (costs.parameters, costs.flops_per_token, costs.tokens, costs.steps)
    texts = ("n/a" if value is None else f"{value:,.0f}" for value in values)
    return dict(zip(HEADS, texts, strict=True))


def cost_lines(plan: "Plan") -> Iterator[str]:
    """Yield the costs of each trained task as a table, errors, and what arms are matched in."""
    for label in plan.tasks:
        planned = [plan[cell] for cell in plan.cells(label)]
        rows = {one.cell.arm: _row(plan, one) for one in planned}
        heads = list(next(iter(rows.values()), {}))
        if not heads:
            continue
        cells = [["", *heads], *([arm, *row.values()] for arm, row in rows.items())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        yield f"What changed between arms on {label}:"
        for name, *values in cells:
            shown = (value.rjust(width) for value, width in zip(values, widths[1:], strict=True))
            yield f"  {name.ljust(widths[0])}  {'  '.join(shown)}"
        for one in planned:
            if one.costs is not None and one.costs.broken:
                yield f"cannot run: {one.cell.arm} on {label} ({one.costs.broken})"
    if plan.match is not None:
        yield f"Matched to {plan.reference}: {plan.match}."


def _row(plan: "Plan", planned: "PlannedCell") -> dict[str, str]:
    """The costs of an arm on a task and, where arms are matched, its knob."""
    row = cost_rows(planned.costs)
    if plan.match is None:
        return row
    knob = "its default" if planned.knob is None else str(planned.knob)
    return {**row, plan.match.knob: knob}


TITLE = "all tasks together: skill beyond the trained lengths"
FEW = 10
"""With fewer seeds a bootstrap interval is too narrow."""


def caption(found: Sequence[Overall]) -> str:
    """Explain the numbers of all tasks together, and their limits."""
    few = min(one.middle.n for one in found)
    seeds = "1 seed makes" if few == 1 else f"{few} seeds make"
    narrow = f"; {seeds} such intervals too narrow" if few < FEW else ""
    return (
        "Interquartile mean over seeds and tasks with its stratified bootstrap interval "
        f"(95 %{narrow}), and the share of pairs of seeds in which the arm of the row is better "
        "than that of the column, equal ones counting half. Arms that did not learn count too, and "
        "those without a value on some task are left out; in no verdict."
    )


def print_overall(console: "Console", found: Sequence[Overall]) -> None:
    """Print the arms as rows; how often each is better than the next, where it has one."""
    if not found:
        return
    console.print(f"\n[bold]{TITLE}[/bold] (exploratory)", highlight=False)
    table = _table("", "interquartile mean", "95 % bootstrap", "better than the next, ties half")
    for one, below in zip(found, [*found[1:], None], strict=True):
        low, high = one.middle.low or 0.0, one.middle.high or 0.0
        ahead = "" if below is None else f"in {one.better[below.arm] * 100:.0f} % of pairs"
        interval = f"{number(low)} to {number(high)}"
        table.add_row(f"  {one.arm}", number(one.middle.mean), interval, ahead)
    console.print(table)
