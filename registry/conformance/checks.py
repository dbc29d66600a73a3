"""What a promise is, how it is looked up, and how it says that it is broken or does not apply."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import textwrap
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar, get_args

import torch
from torch import Tensor

from registry.errors import UnknownNameError
from registry.registry import Registry

Keep = TypeVar("Keep", bound=Callable[..., None])
Status = Literal["kept", "broken", "waived", "not applicable"]


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
            mark = getattr(value, "__promise__", None)
            if isinstance(mark, Promise) and mark.keep.__module__ == module:
                found |= {mark.name: mark} if not mark.kinds or table.kind in mark.kinds else {}
    return found


def promise_of(table: Registry, name: str) -> Promise:
    """The promise of this name.

    Raises:
        UnknownNameError: If parts of this kind make no such promise; the nearest are named.
    """
    promises = promises_of(table)
    if name not in promises:
        article = "an" if table.kind[0] in "aeiou" else "a"
        raise UnknownNameError(f"promise of {article} {table.kind}", name, sorted(promises))
    return promises[name]


@dataclass(frozen=True)
class Result:
    """What became of one promise.

    `detail` says what is broken and where, the reason of the waiver, or why it does not apply. A
    waived promise is broken, as the part says.
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
    """The results of a part's promises, in the order of trial, under its name, class and file."""

    title: str
    results: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        """Is no promise broken?"""
        return not self.broken

    @property
    def broken(self) -> list[Result]:
        """The results of broken promises."""
        return [result for result in self.results if result.status == "broken"]

    @property
    def summary(self) -> str:
        """How many promises are kept, broken, waived and not applicable."""
        found = Counter(result.status for result in self.results)
        return ", ".join(f"{found[one]} {one}" for one in get_args(Status) if found[one])

    def __str__(self) -> str:
        lines = [line for result in self.results for line in result.lines()]
        return "\n".join([self.title, *lines, self.summary])


def require(condition: Any, detail: str) -> None:
    """Break the promise with this detail, unless the condition holds."""
    if not condition:
        raise Broken(detail)


def require_same(found: Tensor, expected: Tensor, what: str, tolerance: float = 1e-9) -> None:
    """Break the promise unless two tensors agree; what is not finite agrees with nothing.

    The tolerance is relative to the largest expected value, or to 1 where that is less.
    """
    require(
        found.shape == expected.shape,
        f"{what}: shape {tuple(found.shape)}, expected {tuple(expected.shape)}",
    )
    if not found.numel():
        return
    require(expected.isfinite().all(), f"{what}: what it is compared with is not finite")
    difference = (found.double() - expected.double()).abs().max().item()
    largest = max(expected.double().abs().max().item(), 1.0)
    require(
        difference <= tolerance * largest,
        f"{what}: differs by {difference:.3g} (allowed: {tolerance * largest:.1g})",
    )


def require_same_gradients(
    found: Mapping[str, Tensor], expected: Mapping[str, Tensor], what: str, tolerance: float = 1e-9
) -> None:
    """Break the promise unless the same parameters get the same gradients.

    Gradients come by the path of their parameter, for which `what` has a {}.
    """
    which = what.format("parameters that have one")
    require(found.keys() == expected.keys(), f"other parameters get gradients: {which}")
    for path, gradient in found.items():
        require_same(gradient, expected[path], what.format(path), tolerance)


def relative_error(found: Tensor, exact: Tensor) -> float:
    """The norm of the difference as a share of the norm of the exact tensor."""
    return ((found.to(exact.dtype) - exact).norm() / exact.norm()).item()


@contextmanager
def left_alone(*tensors: Tensor, detail: str = "an input is changed in place") -> Generator[None]:
    """Break the promise if the block changes one of the tensors in place."""
    kept = [tensor.clone() for tensor in tensors]
    yield
    for tensor, before in zip(tensors, kept, strict=True):
        require(torch.equal(tensor, before), detail)


@contextmanager
def nothing_drawn(detail: str) -> Generator[None]:
    """Break the promise if the block draws from torch's global generator."""
    before = torch.get_rng_state()
    yield
    require(torch.equal(torch.get_rng_state(), before), detail)


def only_for(condition: Any, why: str) -> None:
    """Leave the promise, unless it says something about this part."""
    if not condition:
        raise NotApplicable(why)
