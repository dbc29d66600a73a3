"""The options with which a part is tried: its defaults, and each choice that they leave open."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from registry.options import holds_tensor, options_of
from registry.problems import ConfigError, Problem
from registry.table import TABLES

REQUIRED: dict[Any, Any] = {bool: True, int: 2, float: 1.0}
"""What is tried for an option without a default."""


def variations(kind: str, part: type) -> list[dict[str, Any]]:
    """Options to try: first the defaults, then every word of each choice and both truth values.

    Options vary one at a time. Numbers keep their defaults. A part adds what else should be tried
    as `examples`, a sequence of mappings, the first of which tells options without a default.

    Raises:
        ConfigError: If an option has no default, and no example tells a value.
    """
    examples: list[Mapping[str, Any]] = list(getattr(part, "examples", ()))
    first = {**_required(kind, part, examples)}
    found = [first]
    for name, annotation, default in options_of(part):
        now = first.get(name, default)
        found += [{**first, name: value} for value in _words(annotation) if not _same(value, now)]
    found += [{**first, **example} for example in examples]
    return list({repr(one): one for one in found}.values())


def other_values(part: type, name: str, options: Mapping[str, Any]) -> list[Any]:
    """Values for an option that differ from the one it has here."""
    annotation, default = next((a, d) for n, a, d in options_of(part) if n == name)
    now = options.get(name, default)
    told = [example[name] for example in getattr(part, "examples", ()) if name in example]
    found = [*told, *_words(annotation), *_numbers(annotation, now), *_parts(annotation)]
    return [value for value in found if not _same(value, now)]


def _required(kind: str, part: type, examples: list[Mapping[str, Any]]) -> dict[str, Any]:
    told = dict(examples[0]) if examples else {}
    found: dict[str, Any] = {}
    for name, annotation, default in options_of(part):
        if default is not ...:
            continue
        values = [told[name]] if name in told else [*_words(annotation), *_parts(annotation)]
        values += [REQUIRED[annotation]] if annotation in REQUIRED else []
        if not values or (name not in told and holds_tensor(annotation)):
            rule = (
                f"the option {name!r} of {part.__qualname__} has no default: say what to try, as "
                f"in examples = ({{{name!r}: …}},)"
            )
            raise ConfigError([Problem(kind, rule)])
        found[name] = values[0]
    return found


def _same(one: Any, other: Any) -> bool:
    # Tensors have no single answer to ==, and 1 == True.
    return repr(one) == repr(other)


def _words(annotation: Any) -> Iterator[Any]:
    """The values of a Literal or a bool, also inside a union."""
    if annotation is bool:
        yield from (True, False)
    elif get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for inner in get_args(annotation):
            yield from _words(inner) if get_origin(annotation) is not tuple else ()


def _numbers(annotation: Any, now: Any) -> Iterator[Any]:
    """Numbers near the present one."""
    kinds = {annotation, *get_args(annotation)}
    if int in kinds:
        yield from (now + 1, 2 * now, 4 * now, now // 2) if type(now) is int else (3, 8)
    if float in kinds:
        yield from (2.0 * now, now / 2, now + 0.25) if isinstance(now, float) else (0.5, 2.0)
    if type(None) in kinds:
        yield None


def _parts(annotation: Any) -> Iterator[Any]:
    """Parts of the kind that an option such as `inner: Position` asks for."""
    for table in TABLES.values():
        if annotation is table.contract:
            yield from [name for name in ("sinusoidal", "rope") if name in table] or list(table)
