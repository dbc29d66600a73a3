"""Put the settings of a study together: its own < a YAML file < `--set` and other options."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from registry.config import EncoderConfig
from registry.errors import ConfigError, Problem, problems_of, unknown_key
from registry.yaml_file import read_yaml, with_settings
from studies.experiment.overlays import EXAMPLES, Layer, merge, name_of, nested, not_a_mapping
from studies.experiment.settings import Settings
from studies.training.settings import with_its_place

IN_PANELS = ("encoder", "training", "evaluation")
ENCODER_KEYS = frozenset(f"encoder.{key}" for key in ("preset", *EncoderConfig.model_fields))


@dataclass(frozen=True)
class ResolvedSettings:
    """Settings, and what is wrong with them; where something is, `settings` may lack it.

    `layers` are what they are made of, as it was written, from the top down.
    """

    settings: Settings | None
    problems: tuple[Problem, ...] = ()
    layers: tuple[Layer, ...] = ()


def gather(
    defaults: Mapping[str, Any],
    file: Path | None = None,
    assignments: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings of a study.

    Args:
        defaults: Those of the budget.
        file: A YAML file that changes some of them.
        assignments: Changes that win over the file, as `dotted.key=value`.
        options: Keys of `study` that win over all.

    Raises:
        ConfigError: If something cannot be read or breaks a rule; every problem is told.
    """
    found = resolve_settings(defaults, file, assignments, options)
    if found.problems or found.settings is None:
        raise ConfigError(found.problems)
    return found.settings


def resolve_settings(
    defaults: Mapping[str, Any],
    file: Path | None = None,
    assignments: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
    layers: Sequence[Layer] = (),
) -> ResolvedSettings:
    """As `gather`, but what breaks a rule is returned, with settings that leave it out.

    `layers` are those of a file that the defaults are made of, from the top down.

    Raises:
        ConfigError: If something cannot be read.
    """
    in_file = {} if file is None else read_yaml(file)
    typed: dict[str, Any] = {}
    for assignment in assignments:
        typed = merge(typed, with_settings({}, [assignment]))
    if {"name", "question"} <= set(in_file):
        rule = f"this file describes a whole study: python -m studies.run {file}"
        raise ConfigError([Problem("", rule, file=str(file))])
    problems = [
        problem.under("", None if told is typed else str(file))
        for told in (in_file, typed)
        for root, value in told.items()
        if (problem := not_a_mapping(root, value))
    ]
    if problems:
        raise ConfigError(problems)
    data = merge_settings(merge_settings(dict(defaults), in_file), typed)
    data = merge(data, {"study": options or {}})
    settings, wrong = check(data)
    if settings is None:
        settings = _sound(data, wrong, defaults)
    written = (Layer({"study": options or {}}), Layer(typed), Layer(in_file, file), *layers)
    return ResolvedSettings(settings, tuple(at_origin(one, written) for one in wrong), written)


def _sound(
    data: Mapping[str, Any], wrong: Sequence[Problem], defaults: Mapping[str, Any]
) -> Settings | None:
    """Settings without what is wrong in them, so that what the arms get wrong is told as well."""
    settings, _ = check(without(data, [problem.key.split(".") for problem in wrong]))
    if settings is not None:
        return settings
    broken = {problem.key.split(".")[0] for problem in wrong}
    sound = {root: value for root, value in data.items() if root not in broken}
    return check({"study": defaults.get("study", {}), **sound})[0]


def check(data: Mapping[str, Any]) -> tuple[Settings | None, list[Problem]]:
    """The settings that plain data says, and what is wrong with it."""
    try:
        settings, problems = Settings(**data), list[Problem]()
    except ValidationError as error:
        settings, problems = None, [_with_all_roots(one) for one in problems_of(error, Settings)]
    shared = _encoder_problems(data.get("encoder", {}))
    if settings is not None:
        # Shared keys need not make an encoder by themselves, but each has to be a key of one.
        shared = [one for one in shared if one.key.count(".") == 1 and one.key not in ENCODER_KEYS]
    wrong = [with_its_place(one, Settings) for one in problems + shared]
    return (None if shared else settings), wrong


def _with_all_roots(problem: Problem) -> Problem:
    """An unknown root, told with all that may be written, though a task becomes a panel."""
    if "." in problem.key or problem.code != "unknown_key":
        return problem
    return unknown_key(problem.key, problem.value, EXAMPLES)


def merge_settings(below: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with a layer over them, in which what is said of one run is said of the study.

    A `task` becomes the only panel. What the layer says under `encoder`, `training` or `evaluation`
    holds for every panel below it, in place of its own. `training.learning_rate` is the only rate
    that is tried; other `arms` or `factors` replace both.

    Raises:
        ConfigError: If the layer contradicts itself.
    """
    study = dict(layer.get("study", {}))
    lower = dict(below.get("study", {}))
    panels = _panels(study, lower)
    if panels and "task" in layer and "panels" in study:
        rule = "a study has either one task or the list study.panels; leave one of them out"
        raise ConfigError([Problem("task", rule, layer["task"])])
    if "panels" not in study:
        panels = [_under(layer, panel) for panel in panels]
    if "task" in layer:
        panels = [_panel_of(layer["task"], panels)]
    if panels:
        study["panels"] = panels
    if isinstance(study.get("search"), Mapping) and isinstance(lower.get("search"), Mapping):
        study["search"] = {**lower["search"], **study["search"]}
    if "arms" in study or "factors" in study:
        lower = {key: value for key, value in lower.items() if key not in ("arms", "factors")}
    tries = [key for key in ("learning_rates", "tune") if key in study]
    if "learning_rate" in layer.get("training", {}):
        tries.append("learning_rate")
        study["learning_rates"] = [layer["training"]["learning_rate"]]
    if len(tries) > 1:
        rule = (
            "a study tries either one learning_rate or the list study.learning_rates, or the "
            "settings of study.tune"
        )
        key = "training.learning_rate" if "learning_rate" in tries else "study.tune"
        raise ConfigError([Problem(key, rule)])
    if tries:
        lower = {key: one for key, one in lower.items() if key not in ("learning_rates", "tune")}
    kept = {key: value for key, value in layer.items() if key not in ("task", "study")}
    return {**merge({**below, "study": lower}, kept), "study": {**lower, **study}}


def _panels(study: Mapping[str, Any], lower: Mapping[str, Any]) -> list[dict[str, Any]]:
    panels = study.get("panels", lower.get("panels", []))
    if not isinstance(panels, list) or not all(isinstance(one, Mapping) for one in panels):
        rule = f"panels is a list of mappings with a task and its steps; got {panels!r}"
        raise ConfigError([Problem("study.panels", rule, panels)])
    return [dict(panel) for panel in panels]


def _under(layer: Mapping[str, Any], panel: Mapping[str, Any]) -> dict[str, Any]:
    """A panel with what the layer above it says for all panels."""
    kept = dict(panel)
    for root in IN_PANELS:
        if root in kept and root in layer:
            kept[root] = merge(nested(kept[root]), layer[root])
    return {**kept, "steps": None} if "steps" in layer.get("training", {}) else kept


def _panel_of(task: Any, panels: list[dict[str, Any]]) -> dict[str, Any]:
    names = [str(name_of(panel.get("task"))) for panel in panels]
    if isinstance(task, Mapping) and "name" not in task:
        if len(panels) != 1:
            keys = ", ".join(f"task.{key}" for key in task)
            why = "has several tasks" if panels else "has no task yet"
            rule = f"{keys} needs task.name as well, since this study {why}"
            raise ConfigError([Problem("task", rule, task, tuple(names))])
        task = {"name": names[0], **task}
    same = next((panel for panel in panels if name_of(panel.get("task")) == name_of(task)), {})
    return {**same, "task": merge({"task": same.get("task", {})}, {"task": task})["task"]}


def _encoder_problems(encoder: Any) -> list[Problem]:
    if not isinstance(encoder, Mapping):
        return []
    try:
        EncoderConfig(**encoder)
    except ConfigError as error:
        return [problem.under("encoder") for problem in error.problems]
    return []


FIRST_PANEL = "study.panels.0."
RATES = "study.learning_rates"


def at_origin(problem: Problem, layers: Sequence[Layer]) -> Problem:
    """A problem under the key that was written, and with the file that says so.

    A key that is missing is told under the lowest layer that has the place that lacks it.

    Args:
        problem: Under its key in the settings that all layers make.
        layers: From the top down.
    """
    key, parent = problem.key, problem.key.rpartition(".")[0]
    found = [
        *((layer, one) for layer in layers for one in _spellings(key) if holds(layer.data, one)),
        *((layer, key) for one in _places(key) for layer in layers if holds(layer.data, one)),
        *((layer, key) for layer in reversed(layers) if parent and holds(layer.data, parent)),
    ]
    if not found:
        return problem
    layer, key = found[0]
    place = f"{layer.under}.{key}" if layer.under else key
    return replace(problem, key=place, file=None if layer.file is None else str(layer.file))


def _spellings(key: str) -> Iterator[str]:
    """A task may be written for the only panel, a rate for the list of rates."""
    if key.startswith(f"{FIRST_PANEL}task"):
        yield key.removeprefix(FIRST_PANEL)
    if key.startswith(RATES):
        yield "training.learning_rate"
    yield key


def _places(key: str) -> Iterator[str]:
    """Other places of a key: arms may be the cells of crossed factors.

    What is wrong with one of several settings is written somewhere in their grid.
    """
    if key == "study.arms":
        yield "study.factors"
    if key.startswith("study.tune"):
        yield "study.tune"


def holds(data: Any, key: str) -> bool:
    """Return whether plain data has something under a dotted key."""
    return _holds(data, key.split("."))


def _holds(data: Any, path: Sequence[str]) -> bool:
    return not path or any(_holds(value, rest) for value, rest in _steps(data, path))


def _steps(data: Any, path: Sequence[str]) -> Iterator[tuple[Any, Sequence[str]]]:
    """The values that a path leads to, each with the rest of the path; keys may be dotted."""
    for key, value in _items(data):
        rest = _beyond(path, key)
        if rest is not None:
            yield value, rest


def _items(data: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(data, Mapping):
        return data.items()
    return enumerate(data) if isinstance(data, list | tuple) else ()


def _beyond(path: Sequence[str], key: Any) -> Sequence[str] | None:
    words = str(key).split(".")
    return path[len(words) :] if list(path[: len(words)]) == words else None


def without(data: Any, paths: Sequence[Sequence[str]]) -> Any:
    """Plain data without what is at these paths; where a path ends early, without its end."""
    kept: dict[Any, Any] = {}
    for key, value in _items(data):
        inside = [rest for path in paths if (rest := _beyond(path, key)) is not None]
        if all(any(_steps(value, rest)) for rest in inside):
            kept[key] = without(value, inside)
    if isinstance(data, Mapping):
        return kept
    return list(kept.values()) if isinstance(data, list | tuple) else data
