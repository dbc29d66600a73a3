"""A part on trial: with every variation of its options, at its name, its waivers in hand."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import sys
import traceback
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, get_args, get_origin

import torch

from registry.build import threads
from registry.conformance.checks import Broken, NotApplicable, Promise, Result, Status, promise_of
from registry.conformance.subject import Subject
from registry.errors import ConfigError, Problem
from registry.options import holds_tensor, options_of
from registry.registry import REGISTRIES, Registry

REQUIRED: dict[Any, Any] = {bool: True, int: 2, float: 1.0}
"""What is tried for an option without a default."""


def variations(kind: str, part: type) -> list[dict[str, Any]]:
    """Options to try: first the defaults, then every word of each choice and both truth values.

    Options vary one at a time. Numbers keep their defaults. A part adds what else should be tried
    as `examples`, a sequence of mappings, the first of which gives options without a default.

    Raises:
        ConfigError: If an option has no default, and no example gives a value.
    """
    examples: list[Mapping[str, Any]] = list(getattr(part, "examples", ()))
    first = _required(kind, part, dict(examples[0]) if examples else {})
    found = [first]
    for name, annotation, default in options_of(part):
        now = first.get(name, default)
        found += [{**first, name: value} for value in _words(annotation) if not _same(value, now)]
    found += [{**first, **example} for example in examples]
    return list({repr(options): options for options in found}.values())


def other_values(part: type, name: str, options: Mapping[str, Any]) -> list[Any]:
    """Values for an option that differ from the one it has here."""
    annotation, default = next((a, d) for n, a, d in options_of(part) if n == name)
    now = options.get(name, default)
    found = [example[name] for example in getattr(part, "examples", ()) if name in example]
    found += [*_words(annotation), *_numbers(annotation, now), *_parts(annotation)]
    return [value for value in found if not _same(value, now)]


def _required(kind: str, part: type, example: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, annotation, default in options_of(part):
        if default is not ...:
            continue
        values = [*_words(annotation), *_parts(annotation)]
        values += [REQUIRED[annotation]] if annotation in REQUIRED else []
        values = [example[name]] if name in example else values
        if not values or (name not in example and holds_tensor(annotation)):
            rule = (
                f"the option {name!r} of {part.__qualname__} has no default: say what to try, as "
                f"in examples = ({{{name!r}: …}},)"
            )
            raise ConfigError([Problem(kind, rule)])
        found[name] = values[0]
    return found


def _same(value: Any, other: Any) -> bool:
    # Tensors have no single answer to ==, and 1 == True.
    return repr(value) == repr(other)


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
        table: The registry of its kind.
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
            promise_of(table, name)
            if not reason.strip():
                raise TypeError(f"{part.__qualname__} waives {name} without a reason")
        with self._at_its_name():
            tried = [Subject(table, part, options) for options in variations(table.kind, part)]
            self.subjects = [subject for subject in tried if subject.is_accepted()]
            if not self.subjects:
                tried[0].make()  # raises what the part says to its defaults

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
                try:
                    promise.keep(subject)
                except NotApplicable as reason:
                    reasons.append(str(reason))
                except Exception as error:
                    where = f"with {subject}: " if subject.options else ""
                    return "broken", " ".join(f"{where}{_fault(error)}".split())
        if len(reasons) == len(subjects):
            return "not applicable", reasons[0]
        return "kept", ""


def _fault(error: Exception) -> str:
    """What a promise says of a fault, or an error with the line that raised it.

    That is a line outside of installed packages, where there is one.
    """
    if isinstance(error, Broken):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    foreign = ("<", sys.prefix)
    own = [
        frame
        for frame in frames
        if "site-packages" not in frame.filename and not frame.filename.startswith(foreign)
    ]
    last = (own or frames)[-1]
    return f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
