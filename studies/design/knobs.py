"""Which value of its knob each arm of a plan gets, so that it matches the reference arm."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from registry.errors import ConfigError, Problem, UnknownNameError
from studies.design.matching import Match, matched
from studies.design.merging import lies_under
from studies.training.settings import RunConfig, check_run

if TYPE_CHECKING:
    from studies.design.plan import Cell, Plan


def reference_of(plan: "Plan", match: Match) -> str:
    """The name of the arm that the others are matched to."""
    declared = plan.settings.study.declared()
    return match.to or (declared[0].name if declared else next(iter(plan.arms)))


def knob_of(plan: "Plan", cell: "Cell", setting: Mapping[str, Any]) -> dict[str, Any]:
    """What matching lays over a cell at a setting of tuning: the knob at its value, or nothing.

    Raises:
        ConfigError: If the arm or the reference is no valid config, or cannot be matched.
    """
    from studies.design.costs import COUNTED

    match = plan.settings.study.match
    if match is None or cell.arm == reference_of(plan, match):
        return {}
    reference = replace(cell, arm=reference_of(plan, match))
    one, other = (check_run(plan.roots(each, setting)) for each in (cell, reference))
    if one.task is None or one.perform is not None or other.task is None:
        rule = f"runs that train a model can be matched; those of {cell.arm} do not"
        raise ConfigError([Problem("study.match", rule)])
    # What tuning tries seldom changes a cost, and counting takes a model.
    key = cell.panel, cell.arm, repr([_costly(one), _costly(other)])
    if key not in plan.knobs:

        def turned(value: int | None) -> RunConfig:
            return check_run(plan.roots(cell, {**setting, **_turn(one, match.knob, value)}))

        target = float(COUNTED[match.what](other))
        plan.knobs[key] = matched(match, (cell.arm, reference.arm), target, turned)
    return _turn(one, match.knob, plan.knobs[key])


def _turn(config: RunConfig, knob: str, value: int | None) -> dict[str, Any]:
    """The overlay that sets the knob of a config; an option of a part comes with its name."""
    if value is None:
        return {}
    *steps, last = knob.split(".")
    overlay: dict[str, Any] = {}
    inside, here = overlay, config.plain()
    for step in steps:
        here = here.get(step) or {}
        inside[step] = {"name": here["name"]} if "name" in here else {}
        inside = inside[step]
    inside[last] = value
    return overlay


def _costly(config: RunConfig) -> list[Any]:
    """The part of a config that decides about costs."""
    training = config.training
    sizes = (training.steps, training.batch_size, training.train_lengths)
    return [config.encoder, config.model, config.task, sizes]


def knob_problems(plan: "Plan") -> list[Problem]:
    """A knob that holds something else than a whole number in a run, or nothing at all."""
    match = plan.settings.study.match
    if match is None:
        return []
    values = [match.value_in(plan.config(cell)) for cell in plan.cells()]
    wrong = [one for one in values if one is not None and type(one) is not int]
    rule = f"a knob holds a whole number; {match.knob} is {wrong[0]!r}" if wrong else ""
    return [Problem("study.match.adjust", rule, match.knob)] if wrong else []


def match_problems(plan: "Plan") -> list[Problem]:
    """What is wrong with what is to be matched, before an arm is looked at."""
    match, study = plan.settings.study.match, plan.settings.study
    if match is None:
        return []
    key, found = "study.match.adjust", list[Problem]()
    if any(lies_under(one, (match.knob,)) or one == match.knob for one in plan.variables):
        rule = f"{match.knob} is what the arms differ in; adjust another key"
        found.append(Problem(key, rule, match.knob))
    if any(match.knob in setting for setting in study.settings()):
        rule = f"{match.knob} is tuned, and so cannot be adjusted as well"
        found.append(Problem(key, rule, match.knob))
    if match.knob.split(".")[0] not in ("encoder", "model", "training"):
        rule = f"a knob is a key of encoder, model or training; got {match.knob!r}"
        found.append(Problem(key, rule, match.knob))
    names = [arm.name for arm in study.declared()] or list(plan.arms)
    if reference_of(plan, match) not in names:
        rule = str(UnknownNameError("arm of this study", reference_of(plan, match), names))
        found.append(Problem("study.match.to", rule, match.to))
    return found
