"""What a search for arms has reached so far, and what nothing else beats."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from studies.experiment.search import Point, front, setting_in
from studies.experiment.settings import PARAMETERS

if TYPE_CHECKING:
    from studies.analysis.results import ArmResult
    from studies.experiment.plan import Plan


def points(plan: "Plan", gathered: "Sequence[ArmResult]") -> list[Point]:
    """The arms that have a value for every objective."""
    search = plan.search
    assert search is not None
    found: list[Point] = []
    for arm in plan.arms:
        of_arm = [one for one in gathered if one.cell.arm == arm]
        values = [_value(plan, of_arm, metric) for metric in search.objectives]
        known = tuple(value for value in values if value is not None)
        if len(known) == len(values):
            found.append(Point(arm, setting_in(plan[of_arm[0].cell].config, search), known))
    return found


def is_settled(gathered: "Sequence[ArmResult]") -> bool:
    """Are all runs over, so that a search can go on from them?"""
    over = all(run.status not in ("planned", "running") for one in gathered for run in one.runs)
    return over and all(one.runs for one in gathered)


def best(plan: "Plan", gathered: "Sequence[ArmResult]") -> list[Point]:
    """The Pareto front of a search, the best of the first objective first."""
    search = plan.search
    if search is None:
        return []
    found = {one.arm: one for one in points(plan, gathered)}
    names = front({arm: one.values for arm, one in found.items()}, list(search.objectives.values()))
    return [found[name] for name in names]


def _value(plan: "Plan", of_arm: "Sequence[ArmResult]", metric: str) -> float | None:
    """The mean over panels of an objective; None where a panel lacks it."""
    values: list[float] = []
    for one in of_arm:
        if metric == PARAMETERS:
            found = [float(run.parameters) for run in one.runs if run.parameters is not None]
        else:
            length = plan[one.cell].longest
            splits = ("test", "train")
            found = [v for s in splits for v in one.values.get((s, metric, length), [])]
        if not found:
            return None
        values.append(sum(found) / len(found))
    return sum(values) / len(values) if values else None
