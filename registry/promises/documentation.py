"""What a part says about itself."""

import doctest
import inspect
import sys
from typing import Any

from registry.promises.promise import NotApplicable, insist, promise
from registry.promises.subject import Subject


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
    insist(not runner.faults, "".join(runner.faults[:1]) + _others(runner.faults))


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
