"""What a check is: a question about a model, what came of it, and what to suspect first."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from studies.acceptance_checks.subject import Subject

Layer = Literal["structure", "numerics", "learning", "parity"]
Status = Literal["passed", "failed", "not applicable"]


class FailedError(Exception):
    """A model does not do what a check asks; the message says what came instead."""


class NotApplicableError(Exception):
    """A check cannot be asked of this model; the message says why."""


@dataclass(frozen=True)
class Told:
    """What a check that passes has to say, with numbers that are stored beside it."""

    detail: str
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Check:
    """One question.

    Args:
        layer: Where it belongs.
        ask: Answers by what it returns, or raises `FailedError` or `NotApplicableError`. Its name
            is the sentence that is promised.
        suspects: What is most often wrong where it fails, in plain words, the likeliest first.
    """

    layer: Layer
    ask: Callable[[Subject], Told]
    suspects: tuple[str, ...]

    @property
    def name(self) -> str:
        """As it is stored."""
        return self.ask.__name__


@dataclass(frozen=True)
class Finding:
    """What came of a check."""

    layer: Layer
    check: str
    status: Status
    detail: str
    suspects: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])

    def plain(self) -> dict[str, Any]:
        """As it is stored."""
        return {**asdict(self), "suspects": list(self.suspects)}


def asked(check: Check, subject: Subject) -> Finding:
    """Ask a model; one that breaks down on the way has failed."""
    try:
        told = check.ask(subject)
    except NotApplicableError as reason:
        return Finding(check.layer, check.name, "not applicable", str(reason))
    except FailedError as error:
        return Finding(check.layer, check.name, "failed", str(error), check.suspects)
    except Exception as error:  # whatever a model raises is the answer to what was asked of it
        detail = f"{type(error).__name__}: {error}"
        return Finding(check.layer, check.name, "failed", detail, check.suspects)
    return Finding(check.layer, check.name, "passed", told.detail, numbers=told.numbers)


def insist(true: bool, detail: str) -> None:
    """Go on only where something holds.

    Raises:
        FailedError: Where it does not.
    """
    if not true:
        raise FailedError(detail)
