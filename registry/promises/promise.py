"""What a promise is, and how it says that it is broken or does not apply."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from registry.table import Table, UnknownNameError

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
    """

    name: str
    keep: Callable[[Any], None]
    dear: bool = False
    once: bool = False

    @property
    def sentence(self) -> str:
        """Its name with spaces."""
        return self.name.replace("_", " ")


def promise(*, dear: bool = False, once: bool = False) -> Callable[[Keep], Keep]:
    """Mark a function as a promise; see `Promise` for the two words."""

    def mark(keep: Keep) -> Keep:
        keep.__promise__ = Promise(keep.__name__, keep, dear, once or dear)  # type: ignore[attr-defined]
        return keep

    return mark


def promises_of(table: Table) -> dict[str, Promise]:
    """The promises of a kind, in the order of their modules and lines."""
    found: dict[str, Promise] = {}
    for module in table.promises:
        for value in vars(import_module(module)).values():
            one = getattr(value, "__promise__", None)
            if isinstance(one, Promise) and one.keep.__module__ == module:
                found[one.name] = one
    return found


def known(table: Table, name: str) -> Promise:
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
