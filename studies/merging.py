"""Lay settings over settings."""

from collections.abc import Mapping
from typing import Any

from registry.problems import ConfigError, Problem


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with what `above` says; a choice of another name replaces, the same one adds."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(value, Mapping):
            if isinstance(old, str) and "name" not in value and key not in ("encoder", "study"):
                old = {"name": old}
            other = "name" in value and name_of(old) != value["name"]
            merged[key] = (
                dict(value) if other or not isinstance(old, Mapping) else merge(old, value)
            )
        elif isinstance(value, str) and isinstance(old, Mapping) and name_of(old) == value:
            continue
        else:
            merged[key] = value
    return merged


def name_of(chosen: Any) -> Any:
    """The name in a choice, be it a plain name or a mapping with options."""
    return chosen.get("name") if isinstance(chosen, Mapping) else chosen


def for_study(defaults: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """The user's settings, with what they say of one run said of the study.

    A `task` becomes the only panel. `training.steps` holds for every panel, in place of their own
    steps, and `training.learning_rate` is the only rate that is tried.
    """
    study = dict(user.get("study", {}))
    training = user.get("training", {})
    panels = study.get("panels", defaults["study"]["panels"])
    if not isinstance(panels, list) or not all(isinstance(one, Mapping) for one in panels):
        rule = f"panels is a list of mappings with a task and its steps; got {panels!r}"
        raise ConfigError([Problem("study.panels", rule, panels)])
    panels = [dict(panel) for panel in panels]
    if "task" in user:
        study["panels"] = panels = [_panel_of(user["task"], panels)]
    if "steps" in training:
        study["panels"] = [{**panel, "steps": None} for panel in panels]
    if "learning_rate" in training:
        if "learning_rates" in study:
            rule = "a study tries either one learning_rate or the list study.learning_rates"
            raise ConfigError([Problem("training.learning_rate", rule)])
        study["learning_rates"] = [training["learning_rate"]]
    kept = {key: value for key, value in user.items() if key != "task"}
    return {**kept, "study": study}


def _panel_of(task: Any, panels: list[dict[str, Any]]) -> dict[str, Any]:
    names = [name_of(panel["task"]) for panel in panels]
    if isinstance(task, Mapping) and "name" not in task:
        if len(panels) > 1:
            keys = ", ".join(f"task.{key}" for key in task)
            rule = f"{keys} needs task.name as well, since this study has several tasks"
            raise ConfigError([Problem("task", rule, task, tuple(names))])
        task = {"name": names[0], **task}
    same = next((panel for panel in panels if name_of(panel["task"]) == name_of(task)), {})
    return {**same, "task": merge({"task": same.get("task", {})}, {"task": task})["task"]}
