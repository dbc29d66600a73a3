"""Bring back the plan behind stored runs, from the words that were typed for them."""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from registry.errors import ConfigError, Problem, UnknownNameError
from studies import published
from studies.experiment.plan import Plan
from studies.experiment.study import Study

if TYPE_CHECKING:
    from store.results import Results


def plan_behind(name: str, results: "Results") -> Plan:
    """The plan of the latest call of a study that is stored.

    Raises:
        UnknownNameError: If no study of this name is stored.
        ConfigError: If the words of that call do not make a plan any more.
    """
    return grown(plan_of(name, words_behind(name, results)), results)


def words_behind(name: str, results: "Results") -> list[str]:
    """What was typed for the latest call of a study that is stored.

    Raises:
        UnknownNameError: If no study of this name is stored.
    """
    runs = results.runs(study=name, phase=None)
    if not runs:
        raise UnknownNameError("study with runs", name, list(results.studies()))
    words = max(runs, key=lambda run: (run.created_at, run.id)).provenance.get("command", [])
    return [str(word) for word in words]


def is_module(name: str) -> bool:
    """Is this study one of our modules, or an axis of one?"""
    module = _module(name)
    if not name.partition(".")[0].isidentifier() or importlib.util.find_spec(module) is None:
        return False
    return hasattr(importlib.import_module(module), "STUDY")


def refuse_our_name(study: Study) -> None:
    """Refuse a user's study that is named as one of ours: their runs would be one study.

    Raises:
        ConfigError: If it is.
    """
    from studies.recipes import RECIPES

    name, file = study.name, study.file
    ours = Path(__file__).parents[1]
    if file is None or file.resolve().is_relative_to(ours):
        return
    if is_module(name) or name in RECIPES.names() or name in published.names():
        rule = f"{name!r} is the name of a study that comes with the sandbox; take another"
        raise ConfigError([Problem("name", rule, name, file=str(file))])


def _module(name: str) -> str:
    # What follows a dot is an axis of the study, which is among its words.
    return f"studies.{name.partition('.')[0]}"


def grown(plan: Plan, results: "Results") -> Plan:
    """The plan with every arm that its search has added so far."""
    from studies.analysis.results import gather_results
    from studies.analysis.search import grow
    from studies.report.stored import Stored

    while plan.settings.study.search is not None:
        stored = Stored(plan, results)
        scores = [score for of_run in stored.scores.values() for score in of_run]
        runs = {cell: stored.confirming.get(cell, []) for cell in plan.cells()}
        more = grow(plan, gather_results(plan, runs, scores, stored.chosen))
        if more is None:
            break
        plan = more
    return plan


def plan_of(name: str, words: Sequence[str]) -> Plan:
    """The plan that these words make of a study."""
    from studies.cli.command import read_plan
    from studies.recipes import RECIPES

    if name in RECIPES.names():
        return read_plan(RECIPES.read(name), words[1:])
    if name in published.names():
        from studies.cli.named import typed_table

        return read_plan(*typed_table(words))
    if words and not words[0].startswith("-"):
        return read_plan(_from_file(name, words), words[1:])
    if not is_module(name):
        raise UnknownNameError("study that comes with the sandbox", name, [])
    return read_plan(importlib.import_module(_module(name)).STUDY, words)


def _from_file(name: str, words: Sequence[str]) -> Study:
    from studies.experiment.study_file import read_study

    if not Path(words[0]).is_file():
        rule = (
            f"the study {name} was read from a file that is not here any more: {words[0]}; call "
            "this from the folder in which the study was run, or put the file back"
        )
        raise ConfigError([Problem("", rule)])
    found = read_study(Path(words[0]))
    if found.name != name:
        rule = f"the file of the study {name} describes another one by now: {found.name!r}"
        raise ConfigError([Problem("name", rule, found.name, file=words[0])])
    return found
