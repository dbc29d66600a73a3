"""A search for the arms that are best at several things at once: arms that a study finds itself.

The arms that a study declares are where the search begins. Generation by generation, Optuna's
sampler then proposes further ones from what the earlier ones reached. Each proposal is an arm like
any other: planned, run, stored and printed as such. A generation follows from the stored results
before it alone, so the same command goes on where it was stopped, and does no run twice.
"""

import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from registry.errors import ConfigError
from studies.experiment.arms import Arm
from studies.experiment.overlays import nested
from studies.experiment.pareto import front
from studies.experiment.settings import PARAMETERS, Search
from studies.experiment.tune import in_words

if TYPE_CHECKING:
    import optuna

    from studies.analysis.results import ArmResult
    from studies.experiment.plan import Cell, Plan


TRIES, DRAWS = 20, 1000
"""Proposals that are known already or cannot be built, in a row, before arms are drawn evenly; and
how many of those, before a search is over."""


@dataclass(frozen=True)
class Point:
    """An arm with what it reached, in the order of the objectives."""

    arm: str
    setting: Mapping[str, Any]
    values: tuple[float, ...]


def arm_of(setting: Mapping[str, Any]) -> Arm:
    """The arm of one point of the space, named after it."""
    return Arm(in_words(setting), overlay=nested(setting))


def grow(plan: "Plan", gathered: "Sequence[ArmResult]") -> "Plan | None":
    """The plan with the arms of the next generation; None where the search is over or waits.

    Args:
        plan: The plan, with the arms so far.
        gathered: What they reached.
    """
    study = plan.settings.study
    search = study.search
    if search is None or study.only is not None or plan.generation >= search.generations:
        return None
    if any(run.status in ("planned", "running") for one in gathered for run in one.runs):
        return None
    if any(not one.runs for one in gathered):
        return None
    arms = tuple(islice(_proposals(plan, search, points(plan, gathered)), search.size))
    if not arms:
        return None
    study = study.model_copy(update={"arms": (*study.arms, *arms)})
    settings = plan.settings.model_copy(update={"study": study})
    return replace(plan, settings=settings, generation=plan.generation + 1)


def points(plan: "Plan", gathered: "Sequence[ArmResult]") -> list[Point]:
    """The arms that have a value for every objective."""
    search = plan.settings.study.search
    assert search is not None
    found: list[Point] = []
    for arm in plan.arms:
        of_arm = [one for one in gathered if one.cell.arm == arm]
        values = [_value(plan, of_arm, metric) for metric in search.objectives]
        known = tuple(value for value in values if value is not None)
        if len(known) == len(values):
            found.append(Point(arm, _setting(plan, of_arm[0].cell, search), known))
    return found


def best(plan: "Plan", gathered: "Sequence[ArmResult]") -> list[Point]:
    """The Pareto front of a search, the best of the first objective first."""
    search = plan.settings.study.search
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
            length = plan.config(one.cell).training.train_lengths[1]
            splits = ("test", "train")
            found = [v for s in splits for v in one.values.get((s, metric, length), [])]
        if not found:
            return None
        values.append(sum(found) / len(found))
    return sum(values) / len(values) if values else None


def _setting(plan: "Plan", cell: "Cell", search: Search) -> dict[str, Any]:
    """Where in the space an arm lies."""
    config = plan.config(cell).plain()
    return {key: _at(config, key) for key in search.space}


def _at(config: Any, key: str) -> Any:
    for step in key.split("."):
        config = config[step]
    return config


def _proposals(plan: "Plan", search: Search, known: Sequence[Point]) -> Iterator[Arm]:
    """Arms that are new and can be built, as long as the sampler finds any."""
    import optuna

    study, refused = _told(plan, search, known), 0
    evenly = random.Random(_seed(plan))
    taken = [_setting(plan, cell, search) for cell in plan.cells()]
    while refused < TRIES + DRAWS:
        trial = study.ask(_distributions(search)) if refused < TRIES else None
        setting = {
            key: evenly.choice(values) if trial is None else values[trial.params[key]]
            for key, values in search.space.items()
        }
        arm = arm_of(setting)
        if setting not in taken and _fits(plan, arm):
            taken.append(setting)
            refused = 0
            yield arm
            continue
        refused += 1
        if trial is not None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)


def _seed(plan: "Plan") -> int:
    """Of what a generation draws."""
    return plan.settings.study.seed + plan.generation


def _told(plan: "Plan", search: Search, known: Sequence[Point]) -> "optuna.Study":
    """A study in memory that has seen the points so far."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # Arms at work count as bad ones, so that one generation spreads out.
        sampler = optuna.samplers.TPESampler(seed=_seed(plan), constant_liar=True)
    study = optuna.create_study(directions=list(search.objectives.values()), sampler=sampler)
    for point in known:
        inside = all(point.setting[key] in search.space[key] for key in search.space)
        if inside:
            params = {key: search.space[key].index(point.setting[key]) for key in search.space}
            study.add_trial(
                optuna.trial.create_trial(
                    params=params, distributions=_distributions(search), values=point.values
                )
            )
    return study


def _distributions(search: Search) -> dict[str, Any]:
    """The place of a value in its list: near places are near values."""
    from optuna.distributions import IntDistribution

    return {key: IntDistribution(0, len(values) - 1) for key, values in search.space.items()}


def _fits(plan: "Plan", arm: Arm) -> bool:
    """Can the arm be built on every panel?"""
    study = plan.settings.study.model_copy(update={"arms": (arm,)})
    tried = replace(plan, settings=plan.settings.model_copy(update={"study": study}))
    try:
        for cell in tried.cells():
            tried.config(cell)
    except ConfigError:
        return False
    return True
