"""Is a part what it says it is? Every promise of its kind, tried on small encoders around it.

>>> from registry import check, positions
>>> report = check(positions["rope"], dear=False)
>>> report.ok
True

In a test of your own:

    @pytest.mark.parametrize("keep", [pytest.param(k, id=n) for n, k in cases(MyPosition)])
    def test_my_position(keep):
        keep()

A promise that a part cannot keep is waived in the part's own file, with a reason:

    class Rows(Position):
        waives = {"rows_of_an_absolute_table_stay_distinct": "its rows repeat after max_length"}

Waivers are strict: once the promise is kept, the waiver itself is what is broken.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from registry.promises.promise import Broken, Promise, known, promises_of
from registry.promises.report import Report, Result
from registry.promises.trial import Trial
from registry.table import Origin, table_for

__all__ = ["Case", "Report", "Result", "cases", "check"]


def check(part: type[Any], *, dear: bool = True, only: Collection[str] = ()) -> Report:
    """Try the promises of a part's kind on it, registered or not.

    Args:
        part: The class.
        dear: Try those that take seconds as well: capture by dynamo, learning a task.
        only: Names of promises; none means all.

    Raises:
        TypeError: If the class extends the contract of no kind, or has no name.
        ConfigError: If it cannot be built with its defaults.
        UnknownNameError: If a name in `only` or in its waivers is that of no promise.
    """
    return Report(title_of(part), tuple(results_of(part, dear=dear, only=only)))


def title_of(part: type[Any]) -> str:
    """A part's kind and name, its class and file."""
    table = table_for(part)
    if not isinstance(vars(part).get("name"), str):
        raise TypeError(f'a part says its name: give {part.__qualname__} a name = "…"')
    return f"{table.kind} {part.name}: {Origin.of(part)}"


def results_of(
    part: type[Any], *, dear: bool = True, only: Collection[str] = ()
) -> Iterator[Result]:
    """The results of `check`, each as soon as it is known."""
    table = table_for(part)
    asked = [known(table, name) for name in only] or list(promises_of(table).values())
    trial = Trial(table, part)
    for one in asked:
        if dear or not one.dear or one.name in only:
            yield trial.result(one)


@dataclass(frozen=True)
class Case:
    """One promise of one part, as a function that fails where it is broken.

    Args:
        part: The class.
        promise: The promise.
    """

    part: type[Any]
    promise: Promise

    def __call__(self) -> Result:
        """Try it.

        Raises:
            AssertionError: If it is broken.
        """
        result = _trial(self.part).result(self.promise)
        if result.status == "broken":
            raise Broken(f"{self.promise.sentence}: {result.detail}")
        return result


def cases(part: type[Any]) -> list[tuple[str, Case]]:
    """The name of each promise of a part, and the function that tries it."""
    return [(one.name, Case(part, one)) for one in promises_of(table_for(part)).values()]


@cache
def _trial(part: type[Any]) -> Trial:
    """One trial a class, so that the cases of a class share its encoders."""
    return Trial(table_for(part), part)
