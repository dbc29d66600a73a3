"""A part on trial: with every variation of its options, at its name, its waivers in hand."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, get_args, get_origin

import torch

from registry.build import threads
from registry.conformance.checks import (
    Broken,
    NotApplicable,
    Promise,
    Result,
    Status,
    known,
    place_of,
)
from registry.conformance.subject import Subject, is_accepted
from registry.errors import ConfigError, Problem
from registry.options import holds_tensor, options_of
from registry.registry import REGISTRIES, Registry

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
    for table in REGISTRIES.values():
        if annotation is table.contract:
            yield from [name for name in ("sinusoidal", "rope") if name in table] or list(table)


class Trial:
    """A part with the options that it is tried with, and the encoders that promises share.

    Args:
        table: The table of its kind.
        part: The class.

    Raises:
        ConfigError: If it cannot be built with its defaults.
        UnknownNameError: If a name in its waivers is that of no promise.
        TypeError: If a waiver has no reason.
    """

    def __init__(self, table: Registry, part: type[Any]) -> None:
        self.table, self.part = table, part
        self.waives: Mapping[str, str] = getattr(part, "waives", {})
        for name, reason in self.waives.items():
            known(table, name)
            if not reason.strip():
                raise TypeError(f"{part.__qualname__} waives {name} without a reason")
        self.subjects = self._subjects()

    def _subjects(self) -> list[Subject]:
        with self._at_its_name():
            tried = [
                Subject(self.table, self.part, options)
                for options in variations(self.table.kind, self.part)
            ]
            return [one for one in tried if is_accepted(one)] or [_refused(tried[0])]

    @contextmanager
    def _at_its_name(self) -> Generator[None]:
        """Let configs find this class, whatever else has its name."""
        added = self.table.added
        self.table.added = {**added, self.part.name: self.part}
        try:
            with torch.random.fork_rng(devices=[]):
                yield
        finally:
            self.table.added = added

    @threads()
    def result(self, promise: Promise) -> Result:
        """Try one promise."""
        status, detail = self._outcome(promise)
        reason = self.waives.get(promise.name)
        if reason is not None and status == "broken":
            return Result(promise.name, "waived", f"{reason} ({detail})")
        if reason is not None:
            stale = f"it is {status}, so the waiver must go: {reason}"
            return Result(promise.name, "broken", stale)
        return Result(promise.name, status, detail)

    def _outcome(self, promise: Promise) -> tuple[Status, str]:
        reasons: list[str] = []
        subjects = self.subjects[:1] if promise.once else self.subjects
        with self._at_its_name():
            for subject in subjects:
                where = f"with {subject}: " if subject.options else ""
                try:
                    promise.keep(subject)
                except NotApplicable as reason:
                    reasons.append(str(reason))
                except Broken as fault:
                    return "broken", _one_line(f"{where}{fault}")
                except Exception as error:
                    said = f"{type(error).__name__}: {error} ({place_of(error)})"
                    return "broken", _one_line(f"{where}{said}")
        if len(reasons) == len(subjects):
            return "not applicable", reasons[0]
        return "kept", ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _refused(subject: Subject) -> Subject:
    """Raise what the part says to its defaults."""
    subject.make()
    return subject
