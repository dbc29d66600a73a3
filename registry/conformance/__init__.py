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

from registry.conformance.checks import Broken, Promise, Report, Result, promise_of, promises_of
from registry.conformance.subject import Trial
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
    return Report(_title(part), tuple(_results(part, dear=dear, only=only)))


def _title(part: type[Any]) -> str:
    table = registry_for(part)
    if not isinstance(vars(part).get("name"), str):
        raise TypeError(f'a part says its name: give {part.__qualname__} a name = "…"')
    return f"{table.kind} {part.name}: {Origin.of(part)}"


def _results(part: type[Any], *, dear: bool, only: Collection[str]) -> Iterator[Result]:
    table = registry_for(part)
    asked = [promise_of(table, name) for name in only] or list(promises_of(table).values())
    trial = Trial(table, part)
    for promise in asked:
        if dear or not promise.dear or promise.name in only:
            yield trial.result(promise)


@dataclass(frozen=True)
class Case:
    """One promise of a part, as a function that raises an AssertionError where it is broken."""

    part: type[Any]
    promise: Promise

    def __call__(self) -> Result:
        result = _trial(self.part).result(self.promise)
        if result.status == "broken":
            raise Broken(f"{self.promise.sentence}: {result.detail}")
        return result


def cases(part: type[Any]) -> list[tuple[str, Case]]:
    """The name of each promise of a part, and the function that tries it."""
    promises = promises_of(registry_for(part)).items()
    return [(name, Case(part, promise)) for name, promise in promises]


@cache
def _trial(part: type[Any]) -> Trial:
    # Shared, so that the cases of a class share its encoders.
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
    if target is not None and "." in target:
        return _defined_in(target, tables)
    if target is None:
        return [table[name] for table in tables for name in table]
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


def progress(
    parts: Sequence[type[Any]], quick: bool, only: Sequence[str], width: int
) -> Iterator[tuple[bool, str]]:
    """Each line as soon as it is known, and whether all is well so far.

    Of one part all results are shown; of several, each has a line, and what is broken in it.
    """
    asked = {
        part: [name for name in only if name in promises_of(registry_for(part))] for part in parts
    }
    unknown = sorted(set(only).difference(*asked.values()))
    if unknown:
        promise_of(registry_for(parts[0]), unknown[0])
    tried = [part for part in parts if asked[part] or not only]
    ok, alone = True, len(tried) == 1
    for part in tried:
        title, results = _title(part), list[Result]()
        yield from [(ok, title)] * alone
        for result in _results(part, dear=not quick, only=asked[part]):
            results.append(result)
            ok = ok and result.status != "broken"
            yield from ((ok, line) for line in result.lines(width) if alone)
        report = Report(title, tuple(results))
        if alone:
            yield ok, report.summary
        else:
            yield ok, f"{title.split(':')[0]}: {report.summary}"
            yield from ((ok, line) for result in report.broken for line in result.lines(width))
