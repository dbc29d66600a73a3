"""A search for the arms that are best at several things at once: arms that a study finds itself.

The arms that a study declares are where the search begins. Generation by generation, Optuna's
sampler then proposes further ones from what the earlier ones reached. Each proposal is an arm like
any other: planned, run, stored and printed as such. A generation follows from the stored results
before it alone, so the same command goes on where it was stopped, and does no run twice.
"""

import random
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from registry.errors import ConfigError
from studies.experiment.arms import Arm
from studies.experiment.draft import Draft
from studies.experiment.overlays import at, nested
from studies.experiment.settings import Direction, Search
from studies.experiment.tune import in_words

if TYPE_CHECKING:
    import optuna

Name = TypeVar("Name", bound=Hashable)

TRIES, DRAWS = 20, 1000
"""Proposals that are known already or cannot be built, in a row, before arms are drawn evenly; and
how many of those, before a search is over."""


@dataclass(frozen=True)
class Point:
    """An arm with what it reached, in the order of the objectives."""

    arm: str
    setting: Mapping[str, Any]
    values: tuple[float, ...]


def grow(draft: Draft, points: Sequence[Point]) -> Draft | None:
    """The draft with the arms of the next generation; None where the search is over.

    Args:
        draft: The study, with the arms so far.
        points: What those reached that have a value for every objective.
    """
    study = draft.settings.study
    search = study.search
    if search is None or study.only is not None or draft.generation >= search.generations:
        return None
    arms = tuple(islice(_proposals(draft, search, points), search.size))
    if not arms:
        return None
    study = study.model_copy(update={"arms": (*study.arms, *arms)})
    settings = draft.settings.model_copy(update={"study": study})
    return replace(draft, settings=settings, generation=draft.generation + 1)


def setting_in(config: Mapping[str, Any], search: Search) -> dict[str, Any]:
    """The values that a config has for the keys of a search's space."""
    return {key: at(config, key) for key in search.space}


def _proposals(draft: Draft, search: Search, known: Sequence[Point]) -> Iterator[Arm]:
    """Arms that are new and can be built, as long as the sampler finds any."""
    import optuna

    study, refused = _told(draft, search, known), 0
    evenly = random.Random(_seed(draft))
    taken = [setting_in(draft.config(cell).plain(), search) for cell in draft.cells()]
    while refused < TRIES + DRAWS:
        trial = study.ask(_distributions(search)) if refused < TRIES else None
        setting = {
            key: evenly.choice(values) if trial is None else values[trial.params[key]]
            for key, values in search.space.items()
        }
        arm = Arm(in_words(setting), overlay=nested(setting))
        if setting not in taken and _fits(draft, arm):
            taken.append(setting)
            refused = 0
            yield arm
            continue
        refused += 1
        if trial is not None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)


def _seed(draft: Draft) -> int:
    return draft.settings.study.seed + draft.generation


def _told(draft: Draft, search: Search, known: Sequence[Point]) -> "optuna.Study":
    """A study in memory that has seen the points so far."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # Arms at work count as bad ones, so that one generation spreads out.
        sampler = optuna.samplers.TPESampler(seed=_seed(draft), constant_liar=True)
    study = optuna.create_study(directions=list(search.objectives.values()), sampler=sampler)
    for point in known:
        if all(point.setting[key] in search.space[key] for key in search.space):
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


def _fits(draft: Draft, arm: Arm) -> bool:
    study = draft.settings.study.model_copy(update={"arms": (arm,)})
    tried = replace(draft, settings=draft.settings.model_copy(update={"study": study}))
    try:
        for cell in tried.cells():
            tried.config(cell)
    except ConfigError:
        return False
    return True


def front(points: Mapping[Name, Sequence[float]], directions: Sequence[Direction]) -> list[Name]:
    """The names of the points that no other one dominates, the best of the first objective first.

    A point dominates another where it is at least as good in every objective and better in one; of
    points that are alike in all, all stay.

    >>> front({"a": (0.9, 5.0), "b": (0.8, 2.0), "c": (0.7, 3.0)}, ["maximize", "minimize"])
    ['a', 'b']

    Raises:
        ValueError: If a point has more or fewer values than there are directions.
    """
    for name, values in points.items():
        if len(values) != len(directions):
            raise ValueError(f"{name}: {len(directions)} objectives, but {len(values)} values")
    signs = [1 if one == "maximize" else -1 for one in directions]
    gains = {
        name: tuple(sign * value for sign, value in zip(signs, values, strict=True))
        for name, values in points.items()
    }
    kept = [one for one, gain in gains.items() if not any(_beats(o, gain) for o in gains.values())]
    return sorted(kept, key=lambda name: gains[name], reverse=True)


def _beats(other: Sequence[float], one: Sequence[float]) -> bool:
    at_least = all(a >= b for a, b in zip(other, one, strict=True))
    return at_least and tuple(other) != tuple(one)
