"""Where what is wrong was written: on the command line, in a settings file, in that of a study."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from registry.errors import Problem

FIRST_PANEL = "study.panels.0."
RATES = "study.learning_rates"


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


def as_written(problem: Problem, layers: Sequence[Layer]) -> Problem:
    """A problem under the key that was written, and with the file that says so.

    A key that goes on in words, as `study.arms (rope)` does, is looked for without them. A key
    that is missing is told under the lowest layer that has the place that lacks it.

    Args:
        problem: Under its key in the settings that all layers make.
        layers: From the top down.
    """
    for layer in layers:
        for key in _spellings(problem.key):
            if holds(layer.data, key.split(".")):
                return _told(problem, layer, key)
    for place in _places(problem.key):
        for layer in layers:
            if holds(layer.data, place.split(".")):
                return _told(problem, layer, problem.key)
    parent = problem.key.rpartition(".")[0]
    for layer in reversed(layers):
        if parent and holds(layer.data, parent.split(".")):
            return _told(problem, layer, problem.key)
    return problem


def _spellings(key: str) -> Iterator[str]:
    """A task may be written for the only panel, a rate for the list of rates."""
    if key.startswith(f"{FIRST_PANEL}task"):
        yield key.removeprefix(FIRST_PANEL)
    if key.startswith(RATES):
        yield "training.learning_rate"
    yield key


def _places(key: str) -> Iterator[str]:
    """Where a key is written that goes on in words; arms may be the cells of crossed factors.

    What is wrong with one of several settings is written somewhere in their grid.
    """
    place = re.split(r" \(|: ", key)[0]
    if place != key:
        yield place
    if place == "study.arms":
        yield "study.factors"
    if key.startswith("study.tune"):
        yield "study.tune"


def _told(problem: Problem, layer: Layer, key: str) -> Problem:
    place = f"{layer.under}.{key}" if layer.under else key
    return replace(problem, key=place, file=None if layer.file is None else str(layer.file))


def holds(data: Any, path: Sequence[str]) -> bool:
    """Is there something at this path of plain data?"""
    if not path:
        return True
    return any(holds(value, rest) for value, rest in _steps(data, path))


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
