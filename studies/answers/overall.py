"""All tasks of a study together: how well each arm does in the middle, and how often it is better.

Beside the verdicts, which are about one task each. Source: Agarwal et al. 2021, "Deep RL at the
edge of the statistical precipice" (arXiv:2108.13264).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from store.aggregate import Interval
from studies.answers.answer import ArmResult, number
from studies.answers.verdicts import outcome_of
from studies.design.plan import Cell, Plan

if TYPE_CHECKING:
    from rich.console import Console

    from studies.statistics.summaries import Scores

REPLICATES = 2_000
TITLE = "all tasks together: skill beyond the trained lengths"
FEW = 10
"""With fewer seeds a bootstrap interval is too narrow."""


@dataclass(frozen=True)
class Overall:
    """An arm over all tasks.

    Args:
        arm: Its name.
        middle: The interquartile mean of all its seeds of all tasks, with its stratified bootstrap
            interval (95 %).
        gap: By how much they fall short of skill 1 on average.
        better: By other arm, how often a seed of this arm is better than one of the other; as good
            is half better.
    """

    arm: str
    middle: Interval
    gap: float
    better: Mapping[str, float]


def overall(plan: Plan, gathered: Sequence[ArmResult]) -> list[Overall]:
    """Every arm that has a value on every task, the best first; nothing where there is one task.

    A seed's value is its mean skill over the tested lengths beyond the trained ones.
    """
    from studies.statistics.summaries import (
        interquartile_mean,
        optimality_gap,
        probability_of_improvement,
        stratified_bootstrap,
    )

    scores = _scores(plan, gathered)
    found = [
        Overall(
            arm,
            stratified_bootstrap([own], interquartile_mean, replicates=REPLICATES),
            optimality_gap(own),
            {o: probability_of_improvement(own, other) for o, other in scores.items() if o != arm},
        )
        for arm, own in scores.items()
    ]
    return sorted(found, key=lambda one: -one.middle.mean)


def _scores(plan: Plan, gathered: Sequence[ArmResult]) -> "dict[str, Scores]":
    """The values of the seeds, by arm and task."""
    asked = {one.cell: _beyond(plan, one.cell) for one in gathered}
    tasks = {cell.task for cell, lengths in asked.items() if lengths}
    if len(tasks) < 2:
        return {}
    scores: dict[str, dict[str, list[float]]] = {}
    for one in gathered:
        values = outcome_of(plan, one).measured("skill", asked[one.cell])
        if values and asked[one.cell]:
            scores.setdefault(one.cell.arm, {})[one.cell.task] = values
    whole = {arm: of_arm for arm, of_arm in scores.items() if of_arm.keys() == tasks}
    return dict(whole) if len(whole) > 1 else {}


def _beyond(plan: Plan, cell: Cell) -> tuple[int, ...]:
    """The tested lengths beyond the trained ones, where there is a skill."""
    config = plan.config(cell)
    if not config.scored or plan.study.metrics:
        return ()
    longest = config.training.train_lengths[1]
    return tuple(one for one in config.evaluation.test_lengths if one > longest)


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
