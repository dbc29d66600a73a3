"""What a part declares: options that have an effect, and examples that are true."""

import doctest
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from registry.choices import own_numbers
from registry.conformance.checks import only_for, promise, require
from registry.conformance.subject import HEADS, Subject, moved, other_values, ragged, tokens
from registry.registry import options_of
from variants.dims import Dims
from variants.positions.position import BeyondTableError

FAR = torch.tensor([[0, 1, 5, 17, 60, 200, 500]])
"""Indices at which buckets, slopes and wavelengths tell."""


SIZES: tuple[dict[str, int], ...] = ({}, {"d_model": 24, "n_heads": 6})
"""Some rules agree where the number of heads is a power of two."""


@promise()
def every_option_has_an_effect_or_is_rejected(subject: Subject) -> None:
    """On the states at near and far indices, the gradients, the weights, or in training."""
    options = [name for name, _, _ in options_of(subject.part)]
    only_for(options, "it has no options")
    for name in options:
        accepted: list[Any] = []
        for value in other_values(subject.part, name, subject.options):
            other = subject.with_options(**{name: value})
            if not other.is_accepted():
                continue
            accepted.append(value)
            if any(_differ(subject, other, sizes) for sizes in SIZES):
                break
        else:
            values = " or ".join(map(repr, accepted))
            require(not accepted, f"{name} = {values} changes nothing, and is not rejected")


def _differ(subject: Subject, other: Subject, sizes: Mapping[str, int]) -> bool:
    """Do the traces of the two differ, under a mask that either needs for both?"""
    causal = subject.needs_causal or other.needs_causal
    around = {**sizes, "mask": "causal"} if causal else sizes
    one, two = traces(subject, around), traces(other, around)
    return one.keys() != two.keys() or not all(torch.equal(one[name], two[name]) for name in one)


def traces(subject: Subject, around: Mapping[str, Any]) -> dict[str, Tensor]:
    """Everything by which two variants of a part could be told apart."""
    if subject.kind == "mask":
        return _cells(subject.make())
    fresh = subject.fresh(**around)
    found = {f"weight {path}": weight.clone() for path, weight in fresh.state_dict().items()}
    encoder = moved(fresh).double()
    with torch.no_grad():
        for name, call in CALLS.items():
            with own_numbers(3):
                found[name] = _answer(partial(call, encoder), BeyondTableError)
    return found


def _cells(mask: Any) -> dict[str, Tensor]:
    """Those of as many queries as keys, and of fewer, where a rule may be asked to choose."""
    shapes = ((2, HEADS, 12, 12), (2, HEADS, 5, 12))
    return {
        str(shape): _answer(lambda shape=shape: mask.dense(*shape).expand(shape), ValueError)
        for shape in shapes
    }


CALLS: dict[str, Callable[[Any], Tensor]] = {
    "states": lambda encoder: encoder.eval()(ragged()).readout,
    "far states": lambda encoder: encoder.eval()(tokens(1, 7), positions=FAR).hidden,
    "farther": lambda encoder: encoder.eval()(tokens(1, 7), positions=FAR + 5000).hidden,
    "training": lambda encoder: encoder.train()(tokens(2, 40), generator=_generator()).hidden,
    "after training": lambda encoder: encoder.eval()(ragged()).readout,
}


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def _answer(call: Callable[[], Tensor], refusal: type[ValueError]) -> Tensor:
    """What a call answers; a refusal is an answer as well, by its letters."""
    try:
        return call()
    except refusal as error:
        return torch.tensor([float(ord(letter)) for letter in str(error)])


@promise(once=True)
def the_examples_in_its_docstring_are_true(subject: Subject) -> None:
    """Its doctests: the place for numbers from the paper, so that no formula is off by one.

    They find its class, `torch` and `Dims` under their names.
    """
    part = subject.part
    module = sys.modules.get(part.__module__)
    given = {"torch": torch, "Dims": Dims, part.__name__: part}
    scope = {**(vars(module) if module else {}), **given}
    text = inspect.cleandoc(vars(part).get("__doc__") or "")
    test = doctest.DocTestParser().get_doctest(text, scope, part.__name__, None, None)
    only_for(test.examples, "its docstring has no examples")
    runner = _Runner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test)
    others = f" (and {len(runner.faults) - 1} more)" if len(runner.faults) > 1 else ""
    require(not runner.faults, "".join(runner.faults[:1]) + others)


class _Runner(doctest.DocTestRunner):
    def __init__(self, optionflags: int) -> None:
        super().__init__(optionflags=optionflags)
        self.faults: list[str] = []

    def report_failure(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
        wanted = example.want.strip() or "nothing"
        self._note(example, f"gives {got.strip() or 'nothing'}, not {wanted}")

    def report_unexpected_exception(
        self, out: Any, test: Any, example: doctest.Example, exc_info: Any
    ) -> None:
        self._note(example, f"raises {exc_info[0].__name__}: {exc_info[1]}")

    def _note(self, example: doctest.Example, what: str) -> None:
        place = f"line {example.lineno + 1} of its docstring"
        self.faults.append(f"{place}, {' '.join(example.source.split())}, {what}")
