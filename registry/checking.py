"""The command `check`: which parts are meant, and what is printed of them."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from registry.conformance import Report, Result, results_of, title_of
from registry.plugins import load
from registry.problems import ConfigError, Problem
from registry.promises.promise import known, promises_of
from registry.table import TABLES, Table, UnknownNameError, table_for, table_of


def parts_of(target: str | None, kind: str | None) -> list[type[Any]]:
    """The parts that a file, a module, a name or a kind stands for; of nothing, all with promises.

    Raises:
        ConfigError: If a file or module defines no part, or several kinds have the name.
        UnknownNameError: If no part has the name.
    """
    tables = [table_of(kind)] if kind else [table for table in TABLES.values() if table.promises]
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
        kinds = ", ".join(table_for(part).kind for part in found)
        rule = f"several kinds have a part named {target!r}; choose one with --kind: {kinds}"
        raise ConfigError([Problem("kind", rule)])
    return found


def _defined_in(target: str, tables: Sequence[Table]) -> list[type[Any]]:
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
        known(table_for(parts[0]), strange[0])
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
    promised = promises_of(table_for(part))
    return [name for name in names if name in promised]
