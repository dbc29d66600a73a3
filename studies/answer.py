"""The answer of a study: a table per task and metric, and one sentence per arm in plain words."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.intervals import Interval, t_interval
from studies.plan import Cell, Plan
from studies.settings import task_of
from studies.tuning import in_words

if TYPE_CHECKING:
    from rich.console import Console

    from store.records import Run, Score
    from studies.tuning import Chosen

METRICS = {
    "skill": "skill (0 = best blind guess, 1 = all right)",
    "accuracy": "accuracy (share of right answers)",
    "exact": "exact match (share of sequences with every answer right)",
}

COLUMN = 11
"""The widest cell, such as "-1.20±1.48", with the space after it."""


@dataclass(frozen=True)
class ArmResult:
    """What the confirming runs of one arm on one task say.

    `values` holds the finite values over seeds by (split, metric, length).
    """

    cell: Cell
    runs: list["Run"]
    chosen: "Chosen | None"
    values: Mapping[tuple[str, str, int], list[float]]

    def interval(self, metric: str, length: int, split: str = "test") -> Interval | None:
        """Mean and 95 % t-interval over seeds; None where nothing was measured."""
        values = self.values.get((split, metric, length))
        return t_interval(values) if values else None

    def count(self, status: str) -> int:
        """How many of the confirming runs have this status."""
        return sum(run.status == status for run in self.runs)


def results(
    plan: Plan,
    runs: Mapping[Cell, list["Run"]],
    scores: Iterable["Score"],
    chosen: Mapping[Cell, "Chosen"],
) -> list[ArmResult]:
    """Gather the confirming runs of every arm on every task."""
    of_run: dict[int, list[Score]] = defaultdict(list)
    for score in scores:
        of_run[score.run_id].append(score)
    gathered: list[ArmResult] = []
    for cell in plan.cells():
        confirming = [run for run in runs[cell] if run.phase == "confirm"]
        values: dict[tuple[str, str, int], list[float]] = defaultdict(list)
        for run in confirming:
            for score in of_run[run.id]:
                if score.value is not None:
                    values[score.split, score.metric, score.length].append(score.value)
        gathered.append(ArmResult(cell, confirming, chosen.get(cell), values))
    return gathered


def sentence(plan: Plan, result: ArmResult) -> str:
    """What became of an arm: holds, falls below the threshold, or did not learn."""
    threshold = plan.settings.study.threshold
    longest = plan.config(result.cell).training.train_lengths[1]
    trained = result.interval("skill", longest) or result.interval("skill", longest, "validation")
    if result.chosen is not None and result.chosen.setting is None:
        verdict = f"has no result: {result.chosen.reason}."
    elif trained is None:
        verdict = "has no result yet." if not _ended(result) else "has no result: see its runs."
    elif trained.mean < threshold:
        verdict = (
            f"did not learn: skill {number(trained.mean)} at length {longest}, the longest "
            f"trained (below {threshold})."
        )
    else:
        verdict = _reach(plan, result, threshold, longest)
    extras = [verdict, *_remarks(plan, result)]
    return " ".join(extras)


def _ended(result: ArmResult) -> bool:
    return all(run.status not in ("planned", "running") for run in result.runs)


def _reach(plan: Plan, result: ArmResult, threshold: float, longest: int) -> str:
    """How far beyond the trained lengths the mean skill stays above the threshold."""
    held, last = longest, ""
    for length in sorted(plan.config(result.cell).evaluation.test_lengths):
        if length <= longest:
            continue
        skill = result.interval("skill", length)
        if skill is None:
            return f"holds to length {held}; it cannot be asked at length {length}."
        if skill.mean < threshold:
            return f"falls below {threshold} at length {length} (skill {number(skill.mean)}{last})."
        held, last = length, f"; still {number(skill.mean)} at {length}"
    if held == longest:
        return f"learns the trained lengths; no longer one is tested than {longest}."
    values = result.values["test", "skill", held]
    # A seed without a value did not hold: it stays in the count.
    kept = sum(value >= threshold for value in values)
    seeds = f"{kept} of {len(result.runs)} seeds"
    mean = number(t_interval(values).mean)
    if len(values) < len(result.runs):
        return f"holds to length {held} in {seeds} only (skill {mean} where it was measured)."
    return f"holds to length {held} (skill {mean}; above {threshold} in {seeds})."


def _remarks(plan: Plan, result: ArmResult) -> list[str]:
    """What a reader must know beside the verdict."""
    remarks: list[str] = []
    for status in ("diverged", "failed"):
        if result.count(status):
            remarks.append(f"{result.count(status)} of {len(result.runs)} seeds {status}.")
    chosen = result.chosen
    if chosen is not None and chosen.setting is not None:
        for key, side in chosen.edges.items():
            told = in_words({key: chosen.setting[key]}).replace("_", " ")
            remarks.append(f"Its {told} is the {side} tried.")
    said = plan.study.remark(plan.arms[result.cell.arm], plan.settings)
    return [*remarks, said] if said else remarks


def number(value: float) -> str:
    """A share in few signs: ".56", "1.0", "-.03"."""
    # What is not 1 is not shown as 1.
    value = min(value, 0.994) if value < 0.9995 else value
    text = f"{value:.2f}".replace("-0.00", "0.00")
    if text == "1.00":
        return "1.0"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def cell_text(interval: Interval | None) -> str:
    """Mean and half-width of an interval, such as ".56±.02"."""
    if interval is None:
        return "n/a"
    if interval.low is None or interval.high is None:
        return number(interval.mean)
    return f"{number(interval.mean)}±{number((interval.high - interval.low) / 2)}"


def print_answer(console: "Console", plan: Plan, gathered: list[ArmResult]) -> None:
    """Print task by task: a sentence per arm, then a table per metric."""
    for panel in range(len(plan.settings.study.panels)):
        here = [result for result in gathered if result.cell.panel == panel]
        console.print(f"\n{_protocol(plan, here)}", highlight=False)
        _print_sentences(console, plan, here)
        for metric in METRICS:
            console.print(f"\n  [bold]{METRICS[metric]}[/bold]", highlight=False)
            for lengths in _fitting(console, plan, here):
                _print_table(console, plan, here, metric, lengths)


def _protocol(plan: Plan, here: list[ArmResult]) -> str:
    cell = here[0].cell
    config = plan.config(cell)
    shortest, longest = config.training.train_lengths
    shortest = max(shortest, task_of(config.task).min_length)
    label = plan.panel(cell).label
    name = f"{label}: {config.task}" if label else str(config.task)
    return (
        f"[bold]{name}[/bold], {config.training.steps} steps on lengths {shortest} to {longest}, "
        f"{plan.settings.study.seeds} seeds; mean ± half of the 95 % t-interval over seeds"
    )


def _print_sentences(console: "Console", plan: Plan, here: list[ArmResult]) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for result in here:
        table.add_row(f"  {result.cell.arm}", sentence(plan, result))
    console.print(table, highlight=False)


def _fitting(console: "Console", plan: Plan, here: list[ArmResult]) -> list[list[int]]:
    """The tested lengths, in groups whose columns fit side by side, so that nothing is cut."""
    configs = [plan.config(each.cell) for each in here]
    lengths = sorted({length for one in configs for length in one.evaluation.test_lengths})
    label = max(len(name) for name in ("length", *(result.cell.arm for result in here))) + 4
    group = max(1, (console.width - label) // COLUMN)
    return [lengths[start : start + group] for start in range(0, len(lengths), group)]


def _print_table(
    console: "Console", plan: Plan, here: list[ArmResult], metric: str, lengths: list[int]
) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("  length", no_wrap=True)
    for length in lengths:
        table.add_column(str(length), justify="right", no_wrap=True)
    for result in here:
        cells = [cell_text(result.interval(metric, length)) for length in lengths]
        table.add_row(f"  {result.cell.arm}", *cells)
    if metric == "accuracy":
        floors = floors_of(plan, here[0].cell, lengths)
        table.add_row("  floor", *[number(floors[length]) for length in lengths], style="dim")
    console.print(table)


def floors_of(plan: Plan, cell: Cell, lengths: list[int]) -> dict[int, float]:
    """The floor that skill is measured from, at each length."""
    task = task_of(plan.config(cell).task)
    return {length: task.floors(length).highest for length in lengths}
