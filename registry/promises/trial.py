"""A part on trial: with every variation of its options, at its name, its waivers in hand."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from registry.promises.promise import Broken, NotApplicable, Promise, known, place_of
from registry.promises.report import Result, Status
from registry.promises.subject import Subject, is_accepted
from registry.promises.variations import variations
from registry.table import Table
from registry.threads import threads


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

    def __init__(self, table: Table, part: type[Any]) -> None:
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
