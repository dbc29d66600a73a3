"""From the words of a call to a checked plan."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from registry.errors import ConfigError, Problem, UnknownNameError
from registry.plugins import Plugin, load
from studies.experiment.overrides import as_written, try_to_gather
from studies.experiment.plan import Plan
from studies.experiment.study import Study
from studies.experiment.validate import never_asked, plan_problems

OF_ARMS = "study.arms", "--arms"
"""How the keys of what is wrong with one arm begin."""


def ready(
    study: Study,
    budget: str,
    told: Mapping[str, Any],
    config: Path | None,
    plugins: Sequence[str],
    assignments: Sequence[str],
) -> Plan:
    """The checked plan of what was typed.

    Raises:
        ConfigError: With everything that is wrong with the settings and with the arms.
        UnknownNameError: If there is no such budget or arm.
    """
    if budget not in study.budgets:
        raise UnknownNameError("budget", budget, list(study.budgets))
    loaded = [_loaded(plugin, study) for plugin in plugins]
    options = {key: value for key, value in told.items() if value is not None}
    own = study.budgets[budget].settings
    found = try_to_gather(own, config, assignments, options, study.budgets[budget].layers)
    provenance = {
        "command": sys.argv[1:],
        "budget": budget,
        "plugins": [vars(plugin) for plugin in loaded],
    }
    problems = [*found.problems, *_of_other_budgets(study, budget)]
    if found.settings is None:
        raise ConfigError(problems)
    plan = Plan(study, found.settings, provenance=provenance)
    further = plan_problems(plan) + never_asked(plan, budget)
    # A rule may seem broken for what was left out; what an arm says, and names, are wrong anyway.
    problems += [
        as_written(one, found.layers)
        for one in further
        if not found.problems or one.code.startswith("unknown") or (one.item and one.key in OF_ARMS)
    ]
    if problems:
        raise ConfigError(problems)
    return plan


def _loaded(plugin: str, study: Study) -> Plugin:
    """A plug-in; one that the file of the study names is refused with that file."""
    try:
        return load(plugin)
    except ConfigError as error:
        own = str(study.file) if study.file and plugin in study.plugins else None
        raise ConfigError(problem.under("", own) for problem in error.problems) from None


def _of_other_budgets(study: Study, budget: str) -> list[Problem]:
    """What a file gets wrong in budgets that this call does not ask for."""
    return [
        problem
        for name, other in study.budgets.items()
        if name != budget and other.layers
        for problem in try_to_gather(other.settings, layers=other.layers).problems
    ]
