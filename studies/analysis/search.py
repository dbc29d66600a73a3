"""What a search for arms has reached so far, and what nothing else beats."""

from typing import TYPE_CHECKING

from studies.analysis.results import PENDING
from studies.experiment.search import Point, front, setting_in
from studies.experiment.settings import PARAMETERS

if TYPE_CHECKING:
    from studies.analysis.results import StudyResults


def is_settled(results: "StudyResults") -> bool:
    """Are the runs of all arms over, so that a search can go on from them?"""
    return not any(arm.count(*PENDING) or not arm.seeds for _, arm in results.arms)


def points(results: "StudyResults") -> list[Point]:
    """The arms that have a value for every objective."""
    plan, search = results.plan, results.plan.search
    assert search is not None
    cells = {cell.arm: cell for cell in reversed(plan.cells())}
    found: list[Point] = []
    for name in plan.arms:
        values = [_value(results, name, metric) for metric in search.objectives]
        known = tuple(value for value in values if value is not None)
        if len(known) == len(values):
            found.append(Point(name, setting_in(plan[cells[name]].config, search), known))
    return found


def best(results: "StudyResults") -> list[Point]:
    """The Pareto front of a search, the best of the first objective first."""
    search = results.plan.search
    if search is None:
        return []
    found = {one.arm: one for one in points(results)}
    names = front({arm: one.values for arm, one in found.items()}, list(search.objectives.values()))
    return [found[name] for name in names]


def _value(results: "StudyResults", name: str, metric: str) -> float | None:
    """The mean over tasks of an objective of an arm; None where a task lacks it."""
    values: list[float] = []
    for task, arm in results.arms:
        if arm.name != name:
            continue
        if metric == PARAMETERS:
            found = [float(run.parameters) for run in arm.runs if run.parameters is not None]
        else:
            each = (arm.values(metric, task.trained[1], split) for split in ("test", "train"))
            found = [value for of_split in each for value in of_split.values()]
        if not found:
            return None
        values.append(sum(found) / len(found))
    return sum(values) / len(values) if values else None
