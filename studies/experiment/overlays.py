"""Lay settings over settings."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from registry.errors import ConfigError, Problem, nearest_one

ROOTS = ("encoder", "model", "perform", "task", "training", "evaluation", "study")
"""The roots of a config. Those that hold a choice of a part are `model`, `perform` and `task`."""

PLAIN = ("encoder", "training", "evaluation", "study")
EXAMPLES = {
    "encoder": "encoder.d_model",
    "model": "model.name",
    "perform": "perform.name",
    "task": "task.name",
    "training": "training.steps",
    "evaluation": "evaluation.examples",
    "study": "study.arms",
}
"""The roots of a config, each with a key in it."""


@dataclass(frozen=True)
class Layer:
    """Settings as somebody wrote them.

    Args:
        data: What was written.
        file: The file that says so; None for the command line.
        under: The key that all of it stands under in that file, such as `budgets.quick`.
    """

    data: Mapping[str, Any]
    file: Path | None = None
    under: str = ""


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with what `above` says; a choice of another name replaces, the same one adds."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(value, Mapping):
            if isinstance(old, str) and "name" not in value and key not in PLAIN:
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


def nested(overlay: Mapping[str, Any]) -> dict[str, Any]:
    """An overlay whose dotted keys are opened: `{"training.steps": 5}` is a step into training."""
    opened: dict[str, Any] = {}
    for key, value in overlay.items():
        for step in reversed(str(key).split(".")):
            value = {step: value}
        opened = merge(opened, value)
    return opened


def at(data: Any, key: str) -> Any:
    """The value under a dotted key; None if there is none."""
    for step in key.split("."):
        data = data.get(step) if isinstance(data, Mapping) else None
    return data


def leaves(overlay: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of an overlay under their dotted keys; a choice with a name is one value."""
    for key, value in overlay.items():
        if isinstance(value, Mapping) and value and "name" not in value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def differing(*settings: Mapping[str, Any]) -> list[str]:
    """The keys whose values are not the same in all of these."""
    return [
        key
        for key in dict.fromkeys(chain(*settings))
        if any(one.get(key) != settings[0].get(key) for one in settings)
    ]


def not_a_mapping(root: str, value: Any) -> Problem | None:
    """The problem of a root that holds no keys; a choice may be a name."""
    if isinstance(value, Mapping) or root not in EXAMPLES:
        return None
    if root not in PLAIN and isinstance(value, str):
        return None
    hint = f"; a preset is named by {{preset: {value}}}" if root == "encoder" and value else ""
    told = hint if isinstance(value, str) else ""
    rule = f"{root} holds keys, such as {EXAMPLES[root]}; got {value!r}{told}"
    return Problem(root, rule, value)


def lies_under(key: str, places: Iterable[str]) -> bool:
    """Return whether a dotted key is one of the places or inside one."""
    return any(key == place or key.startswith(f"{place}.") for place in places)


def refuse_other_roots(overlay: Any, key: str) -> None:
    """Refuse an overlay that holds anything but roots of a run's config.

    Raises:
        ConfigError: Naming what came and what is allowed.
    """
    allowed = tuple(root for root in ROOTS if root != "study")
    if not isinstance(overlay, Mapping):
        rule = f"an overlay holds keys such as encoder.n_layers; got {overlay!r}"
        raise ConfigError([Problem(key, rule, overlay)])
    wrong = [
        _other_root(f"{key}.{root}" if key else root, root, allowed)
        for root in map(str, overlay)
        if root.split(".")[0] not in allowed
    ]
    if wrong:
        raise ConfigError(wrong)


def _other_root(place: str, root: str, allowed: tuple[str, ...]) -> Problem:
    near = nearest_one(root.split(".")[0], allowed)
    rule = f"an overlay changes roots of a config; got {root!r}"
    return Problem(place, rule, root, allowed, near, code="unknown_key")


def read_each(read: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Every item as it is read.

    Raises:
        ConfigError: With what is wrong with all of them.
    """
    found: list[Any] = []
    problems: list[Problem] = []
    for item in items:
        try:
            found.append(read(item))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return found
