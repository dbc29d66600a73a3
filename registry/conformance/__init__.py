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

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from registry.conformance.checks import Broken, Promise, Report, Result, known, promises_of
from registry.conformance.trial import Trial
from registry.errors import ConfigError, Problem, UnknownNameError
from registry.plugins import load
from registry.registry import REGISTRIES, Origin, Registry, registry_for, registry_of

__all__ = ["Report", "Result", "cases", "check"]


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
    table = registry_for(part)
    if not isinstance(vars(part).get("name"), str):
        raise TypeError(f'a part says its name: give {part.__qualname__} a name = "…"')
    return f"{table.kind} {part.name}: {Origin.of(part)}"


def results_of(
    part: type[Any], *, dear: bool = True, only: Collection[str] = ()
) -> Iterator[Result]:
    """The results of `check`, each as soon as it is known."""
    table = registry_for(part)
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
    return [(one.name, Case(part, one)) for one in promises_of(registry_for(part)).values()]


@cache
def _trial(part: type[Any]) -> Trial:
    """One trial a class, so that the cases of a class share its encoders."""
    return Trial(registry_for(part), part)


def parts_of(target: str | None, kind: str | None) -> list[type[Any]]:
    """The parts that a file, a module, a name or a kind stands for; of nothing, all with promises.

    Raises:
        ConfigError: If a file or module defines no part, or several kinds have the name.
        UnknownNameError: If no part has the name.
    """
    tables = (
        [registry_of(kind)] if kind else [table for table in REGISTRIES.values() if table.promises]
    )
    if target is None:
        return [table[name] for table in tables for name in table]
    if "." in target:
        return _defined_in(target, tables)
    found = [table[target] for table in tables if target in table]
    of_kind = next((table for table in tables if target in (table.kind, table.plural)), None)
    if not found and of_kind:
        return [of_kind[name] for name in of_kind]
    if not found:
        known = sorted({name for table in tables for name in table})
        raise UnknownNameError(tables[0].kind if kind else "part", target, known)
    if len(found) > 1:
        kinds = ", ".join(registry_for(part).kind for part in found)
        rule = f"several kinds have a part named {target!r}; choose one with --kind: {kinds}"
        raise ConfigError([Problem("kind", rule)])
    return found


def _defined_in(target: str, tables: Sequence[Registry]) -> list[type[Any]]:
    module = sys.modules[load(target).module]
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and isinstance(vars(value).get("name"), str)
        and any(issubclass(value, table.contract) for table in tables)
    ]
    if not found:
        kinds = ", ".join(table.contract.__name__ for table in tables)
        rule = f"{target} defines no class with a name that extends one of {kinds}"
        raise ConfigError([Problem("check", rule)])
    return found


def told(
    parts: Sequence[type[Any]], quick: bool, only: Sequence[str], width: int
) -> Iterator[tuple[bool, str]]:
    """Each line as soon as it is known, and whether all is well so far.

    One part is told whole; of several, each has a line, and what is broken in it.
    """
    asked = {part: _asked(part, only) for part in parts}
    strange = sorted(set(only).difference(*asked.values()))
    if strange:
        known(registry_for(parts[0]), strange[0])
    trials = {part: names for part, names in asked.items() if names or not only}
    ok, alone = True, len(trials) == 1
    for part, names in trials.items():
        title = title_of(part)
        yield from [(ok, title)] * alone
        results: list[Result] = []
        for result in results_of(part, dear=not quick, only=names):
            results.append(result)
            ok = ok and result.status != "broken"
            if alone:
                yield from ((ok, line) for line in result.lines(width))
        summary = Report(title, tuple(results)).summary
        if alone:
            yield ok, summary
            continue
        yield ok, f"{title.split(':')[0]}: {summary}"
        broken = [result for result in results if result.status == "broken"]
        yield from ((ok, line) for result in broken for line in result.lines(width))


def _asked(part: type[Any], names: Sequence[str]) -> list[str]:
    """Those of these promises that parts of this kind make."""
    promised = promises_of(registry_for(part))
    return [name for name in names if name in promised]
