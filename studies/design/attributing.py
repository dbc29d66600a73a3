"""Whose problem it is: what is wrong with the config of a cell, under the place that brought it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from registry.errors import Problem, nearest
from studies.design.merging import PLAIN, nested

if TYPE_CHECKING:
    from studies.design.plan import Cell, Plan


def attributed(plan: "Plan", cell: "Cell", problem: Problem) -> Problem:
    """A problem of a cell under its arm, its panel or the setting of tuning that brought it."""
    arm = plan.arms[cell.arm]
    if _brings(arm.over(plan.study.variables), problem.key):
        if all(one.name != arm.name for one in plan.settings.study.declared()):
            return _of_typed(plan, arm.name, problem)
        inside = "" if arm.overlay is None else f".{problem.key}"
        return replace(problem, key=f"study.arms ({arm.name}){inside}")
    only = len(plan.settings.study.panels) == 1 and problem.key.split(".")[0] == "task"
    if not only and _brings(plan.panel(cell).overlay(), problem.key):
        return replace(problem, key=f"study.panels.{cell.panel}.{problem.key}")
    if _brings(nested(plan.settings.study.settings()[0]), problem.key):
        return replace(problem, key=f"study.tune: {problem.key}")
    return problem


def _of_typed(plan: "Plan", name: str, problem: Problem) -> Problem:
    """A problem of an arm that the study does not declare: it may be the slip of one that it does.

    Such an arm is a bare value of the variable, typed for one call.
    """
    known = [one.name for one in plan.settings.study.declared()]
    near = next(iter(nearest(name, known)), None)
    allowed = tuple(dict.fromkeys((*known, *problem.allowed))) if problem.allowed else ()
    told = replace(problem, key=f"--arms ({name})", allowed=allowed)
    return replace(told, nearest=near or problem.nearest)


def _brings(overlay: Mapping[str, Any], key: str) -> bool:
    """Does an overlay say this key, or the part of a config whose option it is?"""
    root, _, rest = key.partition(".")
    places = {key, f"{root}.{rest.partition('.')[0]}"} | (set() if root in PLAIN else {root})
    return any(says(overlay, place) for place in places)


def says(overlay: Any, key: str) -> bool:
    """Does nested data hold something under a dotted key?"""
    for step in key.split("."):
        if not isinstance(overlay, dict) or step not in overlay:
            return False
        overlay = overlay[step]
    return True
