"""Options: each changes something, or is refused."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import doctest
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from registry.conformance.checks import NotApplicable, promise, require
from registry.conformance.subject import HEADS, Subject, is_accepted, moved, ragged, tokens
from registry.conformance.trial import other_values
from registry.options import options_of
from variants.positions.position import BeyondTableError

FAR = torch.tensor([[0, 1, 5, 17, 60, 200, 500]])
"""Indices at which buckets, slopes and wavelengths tell."""


@promise()
def every_option_has_an_effect_or_is_rejected(subject: Subject) -> None:
    """On the states at near and far indices, the gradients, the weights, or in training."""
    options = [name for name, _, _ in options_of(subject.part)]
    if not options:
        raise NotApplicable("it has no options")
    for name in options:
        accepted: list[Any] = []
        for value in other_values(subject.part, name, subject.options):
            other = subject.with_options(**{name: value})
            if not is_accepted(other):
                continue
            accepted.append(value)
            if any(_differ(*_of_both(subject, other, sizes)) for sizes in SIZES):
                break
        else:
            said = " or ".join(map(repr, accepted))
            require(not accepted, f"{name} = {said} changes nothing, and is not rejected")


SIZES: tuple[dict[str, int], ...] = ({}, {"d_model": 24, "n_heads": 6})
"""Some rules agree where the number of heads is a power of two."""


def _of_both(
    one: Subject, other: Subject, sizes: dict[str, int]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Their traces under one mask: one that a single one of them needs would tell them apart."""
    causal = one.needs_causal() or other.needs_causal()
    around = {**sizes, "mask": "causal"} if causal else sizes
    return traces(one, around), traces(other, around)


def traces(subject: Subject, around: Mapping[str, Any]) -> dict[str, Tensor]:
    """Everything by which two variants of a part could be told apart."""
    if subject.kind == "mask":
        return _cells(subject.make())
    fresh = subject.fresh(**around)
    found = {f"weight {path}": weight.clone() for path, weight in fresh.state_dict().items()}
    encoder = moved(fresh).double()
    found |= {name: _attempt(call, encoder) for name, call in CALLS.items()}
    return found


def _cells(mask: Any) -> dict[str, Tensor]:
    """Those of as many queries as keys, and of fewer, where a rule may be asked to choose."""
    found: dict[str, Tensor] = {}
    for queries, keys in ((12, 12), (5, 12)):
        try:
            cells = mask.dense(2, HEADS, queries, keys).expand(2, HEADS, queries, keys)
        except ValueError as error:
            cells = _letters(str(error))
        found[f"{queries} queries and {keys} keys"] = cells
    return found


CALLS: dict[str, Callable[[Any], Tensor]] = {
    "states": lambda encoder: encoder.eval()(ragged()).readout,
    "far states": lambda encoder: encoder.eval()(tokens(1, 7), positions=FAR).hidden,
    "farther": lambda encoder: encoder.eval()(tokens(1, 7), positions=FAR + 5000).hidden,
    "training": lambda encoder: encoder.train()(tokens(2, 40), generator=_generator()).hidden,
    "after training": lambda encoder: encoder.eval()(ragged()).readout,
}


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def _attempt(call: Callable[[Any], Tensor], encoder: Any) -> Tensor:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(3)
        try:
            return call(encoder)
        except BeyondTableError as error:
            return _letters(str(error))


def _letters(text: str) -> Tensor:
    """A refusal is an answer as well."""
    return torch.tensor([float(ord(letter)) for letter in text])


def _differ(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() != other.keys() or any(
        one[name].shape != other[name].shape or not torch.equal(one[name], other[name])
        for name in one
    )


@promise(once=True)
def the_examples_in_its_docstring_are_true(subject: Subject) -> None:
    """Its doctests: the place for numbers from the paper, so that no formula is off by one.

    Args:
        subject: Its class, `torch` and `Dims` are there under their names.
    """
    import torch

    from variants import Dims

    part = subject.part
    scope: dict[str, Any] = {"torch": torch, "Dims": Dims, part.__name__: part}
    module = sys.modules.get(part.__module__)
    scope = {**vars(module), **scope} if module else scope
    text = inspect.cleandoc(vars(part).get("__doc__") or "")
    test = doctest.DocTestParser().get_doctest(text, scope, part.__name__, None, None)
    if not test.examples:
        raise NotApplicable("its docstring has no examples")
    runner = _Runner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test)
    require(not runner.faults, "".join(runner.faults[:1]) + _others(runner.faults))


class _Runner(doctest.DocTestRunner):
    """Says each fault in a sentence."""

    def __init__(self, optionflags: int) -> None:
        super().__init__(optionflags=optionflags)
        self.faults: list[str] = []

    def report_failure(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str
    ) -> None:
        wanted = example.want.strip() or "nothing"
        self._note(example, f"gives {got.strip() or 'nothing'}, not {wanted}")

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        self._note(example, f"raises {exc_info[0].__name__}: {exc_info[1]}")

    def _note(self, example: doctest.Example, what: str) -> None:
        place = f"line {example.lineno + 1} of its docstring"
        self.faults.append(f"{place}, {' '.join(example.source.split())}, {what}")


def _others(faults: list[str]) -> str:
    return f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
