"""What a promise is, and how it says that it is broken or does not apply."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from registry.errors import UnknownNameError
from registry.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor


Keep = TypeVar("Keep", bound=Callable[..., None])


class Broken(AssertionError):  # noqa: N818  (reads as what it says)
    """A promise is broken; the message says where and by how much."""


class NotApplicable(Exception):  # noqa: N818  (an answer, not an error)
    """A promise says nothing about this part; the message says why."""


@dataclass(frozen=True)
class Promise:
    """One promise.

    Args:
        name: Its function's name: a sentence with underscores.
        keep: The function.
        dear: Does it take seconds?
        once: Is it tried with the default options alone?
        kinds: The kinds that make it; empty for every kind whose registry names its module.
    """

    name: str
    keep: Callable[[Any], None]
    dear: bool = False
    once: bool = False
    kinds: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Its name with spaces."""
        return self.name.replace("_", " ")

    def made_by(self, kind: str) -> bool:
        """Do parts of this kind make it?"""
        return not self.kinds or kind in self.kinds


def promise(*kinds: str, dear: bool = False, once: bool = False) -> Callable[[Keep], Keep]:
    """Mark a function as a promise; see `Promise` for the words."""

    def mark(keep: Keep) -> Keep:
        keep.__promise__ = Promise(keep.__name__, keep, dear, once or dear, kinds)  # type: ignore[attr-defined]
        return keep

    return mark


def promises_of(table: Registry) -> dict[str, Promise]:
    """The promises of a kind, in the order of their modules and lines."""
    found: dict[str, Promise] = {}
    for module in table.promises:
        for value in vars(import_module(module)).values():
            one = getattr(value, "__promise__", None)
            if (
                isinstance(one, Promise)
                and one.keep.__module__ == module
                and one.made_by(table.kind)
            ):
                found[one.name] = one
    return found


def known(table: Registry, name: str) -> Promise:
    """The promise of this name.

    Raises:
        UnknownNameError: If parts of this kind make no such promise; the nearest are named.
    """
    all_of_them = promises_of(table)
    if name not in all_of_them:
        article = "an" if table.kind[0] in "aeiou" else "a"
        raise UnknownNameError(f"promise of {article} {table.kind}", name, sorted(all_of_them))
    return all_of_them[name]


def insist(holds: Any, detail: str) -> None:
    """Break the promise with this detail, unless it holds."""
    if not holds:
        raise Broken(detail)


def insist_same(
    found: "Tensor", expected: "Tensor", what: str, tolerance: float = 1e-9, scale: bool = True
) -> None:
    """Break the promise unless two tensors agree; what is not finite agrees with nothing.

    The tolerance is relative to the largest expected value, or to 1 where that is less.
    """
    insist(
        found.shape == expected.shape,
        f"{what}: shape {tuple(found.shape)}, expected {tuple(expected.shape)}",
    )
    if not found.numel():
        return
    insist(expected.isfinite().all(), f"{what}: what it is compared with is not finite")
    difference = (found.double() - expected.double()).abs().max().item()
    largest = max(expected.double().abs().max().item(), 1.0) if scale else 1.0
    insist(
        difference <= tolerance * largest,
        f"{what}: differs by {difference:.3g} (allowed: {tolerance * largest:.1g})",
    )


def place_of(error: BaseException) -> str:
    """The file and line where an error was raised, outside this package and torch if possible."""
    frames: list[tuple[str, int]] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    own = [
        (file, line)
        for file, line in frames
        if "site-packages" not in file and not file.startswith(("<", sys.prefix))
    ]
    file, line = (own or frames)[-1]
    return f"{file}, line {line}"


Status = Literal["kept", "broken", "waived", "not applicable"]


@dataclass(frozen=True)
class Result:
    """What became of one promise.

    Args:
        promise: Its name.
        status: "kept", "broken", "waived" (broken, as the part says) or "not applicable".
        detail: What is broken and where, the reason of the waiver, or why it says nothing here.
    """

    promise: str
    status: Status
    detail: str = ""

    def lines(self, width: int = 100) -> Iterator[str]:
        """The result as text."""
        yield f"  {self.status:14}  {self.promise.replace('_', ' ')}"
        wrapped = textwrap.wrap(self.detail, max(width - 18, 30), break_on_hyphens=False)
        yield from (f"{'':18}{line}" for line in wrapped)


@dataclass(frozen=True)
class Report:
    """What became of every promise of a part.

    Args:
        title: The part's kind and name, its class and file.
        results: One for each promise, in the order of trial.
    """

    title: str
    results: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        """Is no promise broken?"""
        return not any(result.status == "broken" for result in self.results)

    @property
    def summary(self) -> str:
        """How many promises are kept, broken, waived and not applicable."""
        found = Counter(result.status for result in self.results)
        return ", ".join(
            f"{found[status]} {status}" for status in get_args(Status) if found[status]
        )

    def __str__(self) -> str:
        lines = [line for result in self.results for line in result.lines()]
        return "\n".join([self.title, *lines, self.summary])
