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
    said: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
    insist(not said, " ".join("".join(said).split()))


FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
