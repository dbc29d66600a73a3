"""From what was typed to a checked draft of a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from registry.errors import ConfigError, Problem, UnknownNameError
from registry.plugins import Plugin, load
from studies.experiment.draft import Draft
from studies.experiment.overrides import at_origin, resolve_settings
from studies.experiment.study import Study
from studies.experiment.validate import draft_problems, unanswerable_claims

OF_ARMS = "study.arms", "--arms"
"""The keys of problems of a single arm."""


@dataclass(frozen=True)
class Typed:
    """The options that a study is called with.

    Args:
        budget: The name of a budget; None: the default one.
        config: A YAML file with settings that win over those of the budget.
        assignments: Settings that win over the file, as `dotted.key=value`.
        options: Keys of `study` that win over all; those that are None say nothing.
        plugins: Files and modules that register parts, besides those of the study itself.
    """

    budget: str | None = None
    config: Path | None = None
    assignments: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    plugins: Sequence[str] = ()


def load_draft(study: Study, typed: Typed) -> Draft:
    """The checked draft of what was typed.

    Raises:
        ConfigError: With everything that is wrong with the settings and with the arms.
        UnknownNameError: If there is no such budget or arm.
    """
    budget = study.default_budget if typed.budget is None else typed.budget
    if budget not in study.budgets:
        raise UnknownNameError("budget", budget, list(study.budgets))
    plugins = [_loaded(plugin, study) for plugin in (*study.plugins, *typed.plugins)]
    options = {key: value for key, value in typed.options.items() if value is not None}
    own = study.budgets[budget]
    found = resolve_settings(own.settings, typed.config, typed.assignments, options, own.layers)
    problems = [*found.problems, *_of_other_budgets(study, budget)]
    if found.settings is None:
        raise ConfigError(problems)
    files = {"study": study.file, "settings": typed.config}
    draft = Draft(
        study,
        found.settings,
        budget,
        tuple(vars(plugin) for plugin in plugins),
        {use: str(file.resolve()) for use, file in files.items() if file is not None},
    )
    further = draft_problems(draft) + unanswerable_claims(draft, budget)
    # A rule may seem broken for what was left out; what an arm says, and names, are wrong anyway.
    problems += [
        at_origin(one, found.layers)
        for one in further
        if not found.problems or one.code.startswith("unknown") or (one.item and one.key in OF_ARMS)
    ]
    if problems:
        raise ConfigError(problems)
    return draft


def _loaded(plugin: str, study: Study) -> Plugin:
    """A plug-in; one that the file of the study names is refused with that file."""
    try:
        return load(plugin)
    except ConfigError as error:
        own = str(study.file) if study.file and plugin in study.plugins else None
        raise ConfigError(problem.under("", own) for problem in error.problems) from None


def _of_other_budgets(study: Study, budget: str) -> list[Problem]:
    """The problems of budgets that this call does not ask for."""
    return [
        problem
        for name, other in study.budgets.items()
        if name != budget and other.layers
        for problem in resolve_settings(other.settings, layers=other.layers).problems
    ]
