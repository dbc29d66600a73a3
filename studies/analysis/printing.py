"""Print an answer: the verdicts, then panel by panel a sentence per arm and a table per metric."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.table import Table

from store.aggregate import Interval
from studies.analysis.phrases import cell_text, number
from studies.analysis.results import ArmResult
from studies.analysis.sentences import arm_sentence, fit_times, fit_title
from studies.analysis.sentences import sentence as said
from studies.analysis.summaries import Overall
from studies.experiment.match import Costs, costs_of
from studies.experiment.plan import Cell, Plan
from studies.training.settings import RunConfig, task_of

if TYPE_CHECKING:
    from rich.console import Console

    from studies.analysis.search import Point
    from studies.analysis.verdicts import Verdict


METRICS = {
    "skill": "skill (0 = best blind guess, 1 = all right)",
    "accuracy": "accuracy (share of right answers)",
    "exact": "exact match (share of sequences with every answer right)",
}

LATER = ("test", "skill")

COLUMN = 11
"""The widest cell, such as "-1.20±1.48", with the space after it."""


def print_verdicts(
    console: "Console", verdicts: "Sequence[Verdict]", unasked: Mapping[str, str] | None = None
) -> None:
    """Print one sentence per hypothesis; `unasked` are those without a verdict, with the reason."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", max_width=28)
    table.add_column()
    for verdict in verdicts:
        table.add_row(verdict.hypothesis.name, " ".join([said(verdict), *verdict.notes]))
    for name, why in (unasked or {}).items():
        table.add_row(name, f"Not judged: {why}.")
    if verdicts or unasked:
        console.print(table, highlight=False)


def print_answer(console: "Console", plan: Plan, gathered: list[ArmResult]) -> None:
    """Print panel by panel: a sentence per arm, then a table per metric."""
    for panel in range(len(plan.settings.study.panels)):
        here = [result for result in gathered if result.cell.panel == panel]
        if not here:
            continue
        console.print(f"\n{_protocol(plan, here)}", highlight=False)
        _print_sentences(console, plan, here)
        _print_times(console, plan, here)
        for metric in _metrics(plan, here):
            title = {**METRICS, **plan.study.metrics}.get(metric, metric)
            console.print(f"\n  [bold]{title}[/bold]", highlight=False)
            for lengths in _fitting(console, plan, here, metric):
                _print_table(console, plan, here, metric, lengths)
        _print_by_bin(console, here)
        _print_later(console, plan, here)
        _print_alternatives(console, here)


def _print_times(console: "Console", plan: Plan, here: list[ArmResult]) -> None:
    """Print how soon the seeds met the criterion of fit, where there is one."""
    config = plan.config(here[0].cell)
    if not config.scored or config.training.until is None:
        return
    console.print(f"\n  [bold]{fit_title(config.training.until)}[/bold]", highlight=False)
    table = Table.grid(padding=(0, 2, 0, 0))
    for result in here:
        table.add_row(f"  {result.cell.arm}", fit_times(result))
    console.print(table, highlight=False)


def _print_later(console: "Console", plan: Plan, here: list[ArmResult]) -> None:
    """Print the skill at lengths that were evaluated after the study."""
    keys = {key for one in here for key in one.later}
    lengths = sorted(length for split, metric, length in keys if (split, metric) == LATER)
    if lengths:
        title = "skill at lengths evaluated later (exploratory: in no verdict)"
        console.print(f"\n  [bold]{title}[/bold]", highlight=False)
        added = [replace(one, values=one.later) for one in here]
        _print_table(console, plan, added, "skill", lengths)


def print_front(console: "Console", plan: Plan, front: "Sequence[Point]") -> None:
    """Print what a search found that nothing else beats in every objective at once."""
    search = plan.settings.study.search
    if search is None:
        return
    if not front:
        wanted = ", ".join(search.objectives)
        console.print(f"\nNo Pareto front: no arm has a value for each of {wanted}.")
        return
    aims = ", ".join(f"{metric} ({aim}d)" for metric, aim in search.objectives.items())
    told = f"[bold]Pareto front[/bold]: {len(front)} of {len(plan.arms)} arms; {aims}"
    console.print(f"\n{told}", highlight=False)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for _ in search.objectives:
        table.add_column(justify="right")
    table.add_row("", *search.objectives)
    for point in front:
        table.add_row(f"  {point.arm}", *map(amount, point.values))
    console.print(table, highlight=False)


def amount(value: float) -> str:
    """A number of any size: "12,480", ".98", "3.21"."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}".replace("0.", ".", 1)


def _print_alternatives(console: "Console", here: list[ArmResult]) -> None:
    """Print how far other settings carried, where one fits as well or is better on the test."""
    told = [(one.cell.arm, other) for one in here for other in one.alternatives]
    if not told:
        return
    console.print("\n  [bold]settings that tuning tried[/bold] (tuning runs)", highlight=False)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    shown = ""
    for arm, other in told:
        table.add_row("" if arm == shown else f"  {arm}", str(other))
        shown = arm
    console.print(table, highlight=False)


def _metrics(plan: Plan, here: list[ArmResult]) -> list[str]:
    """What has a table: what the study shows, the usual metrics of a task, or all measured."""
    if plan.config(here[0].cell).scored and not plan.study.metrics:
        return list(METRICS)
    found = {metric for result in here for _, metric, _ in result.values}
    return [one for one in plan.study.metrics or sorted(found) if one in found]


def _protocol(plan: Plan, here: list[ArmResult]) -> str:
    cell = here[0].cell
    config = plan.config(cell)
    seeds = plan.settings.study.seeds
    ending = f"{seeds} seeds; mean ± half of the 95 % t-interval over seeds"
    if seeds == 1:
        ending = "1 seed, so no intervals"
    if not config.scored:
        return f"[bold]{cell.task}[/bold], {ending}"
    shortest, longest = config.training.train_lengths
    shortest = max(shortest, task_of(config.task).min_length)
    label, tasks = plan.panel(cell).label, tasks_of(plan, cell.panel)
    name = f"{label}: {tasks}" if label else tasks
    steps = f"{config.training.steps} steps on lengths {shortest} to {longest}"
    return f"[bold]{name}[/bold], {steps}, {ending}"


def tasks_of(plan: Plan, panel: int) -> str:
    """The task of a panel; several, where its arms differ in that."""
    tasks = [plan.config(cell).task for cell in plan.cells() if cell.panel == panel]
    return " or ".join(dict.fromkeys(str(task) for task in tasks if task is not None))


def _print_sentences(console: "Console", plan: Plan, here: list[ArmResult]) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for result in here:
        table.add_row(f"  {result.cell.arm}", arm_sentence(plan, result))
    console.print(table, highlight=False)


def _fitting(console: "Console", plan: Plan, here: list[ArmResult], metric: str) -> list[list[int]]:
    """The tested lengths, in groups whose columns fit side by side, so that nothing is cut."""
    tested = {one for each in here for one in plan.config(each.cell).evaluation.test_lengths}
    measured = {length for each in here for _, name, length in each.values if name == metric}
    lengths = sorted(tested if metric in METRICS else measured)
    label = max(len(name) for name in ("length", *(result.cell.arm for result in here))) + 4
    group = max(1, (console.width - label) // COLUMN)
    return [lengths[start : start + group] for start in range(0, len(lengths), group)]


def _print_table(
    console: "Console", plan: Plan, here: list[ArmResult], metric: str, lengths: list[int]
) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("  length", no_wrap=True)
    for length in lengths:
        table.add_column(str(length), justify="right", no_wrap=True)
    told = cell_text if metric in METRICS else _any_number
    for result in here:
        cells = [told(result.interval(metric, length)) for length in lengths]
        table.add_row(f"  {result.cell.arm}", *cells)
    if metric == "accuracy" and plan.config(here[0].cell).task is not None:
        floors = floors_of(plan, here[0].cell, lengths)
        table.add_row("  floor", *[number(floors[length]) for length in lengths], style="dim")
    console.print(table)


def _any_number(interval: Interval | None) -> str:
    return "n/a" if interval is None else f"{interval.mean:.3g}"


def _print_by_bin(console: "Console", here: list[ArmResult]) -> None:
    """Say what was measured by bin, such as by layer, which is too much for a table."""
    found = {
        score.metric
        for result in here
        for scores in result.scores.values()
        for score in scores
        if score.bin is not None
    }
    if found:
        names = ", ".join(sorted(found))
        console.print(f"\n  Also measured, by bin: {names} (python -m store scores)")


def floors_of(plan: Plan, cell: Cell, lengths: list[int]) -> dict[int, float]:
    """The floor that skill is measured from, at each length."""
    task = task_of(plan.config(cell).task)
    return {length: task.floors(length).highest for length in lengths}


HEADS = ("parameters", "FLOPs per token", "training tokens", "steps")


def cost_rows(config: RunConfig) -> dict[str, str]:
    """The costs of a run as they are printed; empty where nothing is trained."""
    costs = _costs(config)
    return {} if costs is None else _told(costs)


def _costs(config: RunConfig) -> Costs | None:
    return None if config.task is None or config.perform is not None else costs_of(config)


def _told(costs: Costs) -> dict[str, str]:
    values = (costs.parameters, costs.flops_per_token, costs.tokens, costs.steps)
    texts = ("n/a" if value is None else f"{value:,.0f}" for value in values)
    return dict(zip(HEADS, texts, strict=True))


def _row(plan: "Plan", cell: "Cell", costs: Costs | None) -> dict[str, str]:
    """The costs of an arm on a panel and, where arms are matched, its knob."""
    match = plan.settings.study.match
    row = {} if costs is None else _told(costs)
    if match is None:
        return row
    value = match.value_in(plan.config(cell))
    return {**row, match.knob: "its default" if value is None else str(value)}


def cost_lines(plan: "Plan") -> Iterator[str]:
    """A table for each panel whose runs train, what raises, and what arms are matched in."""
    for label in plan.labels():
        costs = {cell: _costs(plan.config(cell)) for cell in plan.cells() if cell.task == label}
        rows = {cell.arm: _row(plan, cell, one) for cell, one in costs.items()}
        heads = list(next(iter(rows.values()), {}))
        if not heads:
            continue
        cells = [["", *heads], *([arm, *row.values()] for arm, row in rows.items())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        yield f"What changed between arms on {label}:"
        for name, *values in cells:
            shown = (value.rjust(width) for value, width in zip(values, widths[1:], strict=True))
            yield f"  {name.ljust(widths[0])}  {'  '.join(shown)}"
        for cell, one in costs.items():
            if one is not None and one.broken:
                yield f"cannot run: {cell.arm} on {label} ({one.broken})"
    match = plan.settings.study.match
    if match is not None:
        yield f"Matched to {plan.reference}: {match}."


TITLE = "all tasks together: skill beyond the trained lengths"
FEW = 10
"""With fewer seeds a bootstrap interval is too narrow."""


def caption(found: Sequence[Overall]) -> str:
    """What the numbers are, and what they are not."""
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
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    for head in ("interquartile mean", "95 % bootstrap", "better than the next, ties half"):
        table.add_column(head, justify="right", no_wrap=True)
    for one, below in zip(found, [*found[1:], None], strict=True):
        low, high = one.middle.low or 0.0, one.middle.high or 0.0
        ahead = "" if below is None else f"in {one.better[below.arm] * 100:.0f} % of pairs"
        interval = f"{number(low)} to {number(high)}"
        table.add_row(f"  {one.arm}", number(one.middle.mean), interval, ahead)
    console.print(table)
