"""Bring back the plan behind stored runs, from the words that were typed for them."""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from registry.problems import ConfigError, Problem
from registry.table import UnknownNameError
from studies import published
from studies.design.plan import Plan
from studies.design.study import Study

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
    """Is this study one of ours, rather than a file of the user's?"""
    from studies.recipes import RECIPES

    return name in RECIPES.names() or importlib.util.find_spec(_module(name)) is not None


def _module(name: str) -> str:
    # What follows a dot is an axis of the study, which is among its words.
    return f"studies.{name.partition('.')[0]}"


def grown(plan: Plan, results: "Results") -> Plan:
    """The plan with every arm that its search has added so far."""
    from studies.answers.answer import gather_results
    from studies.answers.searching import grow
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
    from studies.conducting.command import read_plan
    from studies.recipes import RECIPES

    if name in RECIPES.names():
        return read_plan(RECIPES.read(name), words[1:])
    if name in published.names():
        return read_plan(*published.typed(words))
    if is_module(name):
        return read_plan(importlib.import_module(_module(name)).STUDY, words)
    return read_plan(_from_file(name, words), words[1:])


def _from_file(name: str, words: Sequence[str]) -> Study:
    from studies.design.study_file import read_study

    if not words or not Path(words[0]).is_file():
        where = words[0] if words else "nothing"
        rule = f"the study {name} was read from a file that is not here any more: {where}"
        raise ConfigError([Problem("", rule)])
    return read_study(Path(words[0]))
