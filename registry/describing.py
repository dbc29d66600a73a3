"""What a part says about itself: its first line, options and declared facts."""

import ast
import importlib.util
import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from registry.options import options_of
from registry.table import Table

BESIDE_FACTS = ("name", "examples", "waives")
NO_DOCSTRING = "(no docstring)"
_ASSIGN = (ast.Assign, ast.AnnAssign)


def summary(table: Table, name: str) -> str:
    """The first line of a part's docstring."""
    return docstring(table, name).split("\n", 1)[0]


def docstring(table: Table, name: str) -> str:
    """A part's docstring, read from its file so that nothing is imported.

    Raises:
        LookupError: If the file holds no class of that name.
    """
    if not table.is_builtin(name):
        return inspect.cleandoc(vars(table[name]).get("__doc__") or NO_DOCSTRING)
    file = source_of(table, name)
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and _says_name(node, name):
            return ast.get_docstring(node) or NO_DOCSTRING
    raise LookupError(f"{file} holds no {table.kind} with name = {name!r}")


def mentions(table: Table, name: str, word: str) -> bool:
    """Does a part's name or docstring hold this word, in capitals or not?"""
    return word.casefold() in f"{name} {docstring(table, name)}".casefold()


def source_of(table: Table, name: str) -> Path:
    """The file of a built-in part."""
    spec = importlib.util.find_spec(f"{table.package}.{name}")
    if spec is None or spec.origin is None:
        raise LookupError(f"{table.package}.{name} has no source file")
    return Path(spec.origin)


def _says_name(node: ast.ClassDef, name: str) -> bool:
    """Does the body hold `name = "…"`, annotated or not?"""
    said = [ast.unparse(line).partition(" = ") for line in node.body if isinstance(line, _ASSIGN)]
    return any(left.split(":")[0] == "name" and right == repr(name) for left, _, right in said)


def facts_of(part: type) -> Iterator[tuple[str, Any]]:
    """What a class declares in the annotated variables of its contract, besides its name."""
    ours = (base for base in reversed(part.__mro__) if not base.__module__.startswith("torch."))
    for base in ours:
        for name in inspect.get_annotations(base):
            value = getattr(part, name, None)
            if name not in BESIDE_FACTS and value is not None and not callable(value):
                yield name, value


def describe(part: type) -> str:
    """A class as text: where it is, its docstring, options and facts."""
    options = [
        (name, inspect.formatannotation(annotation), _default(default))
        for name, annotation, default in options_of(part)
    ]
    facts = [(name, repr(value)) for name, value in dict(facts_of(part)).items()]
    parts = [
        f"{part.__module__}.{part.__qualname__}\n{inspect.getfile(part)}",
        inspect.cleandoc(vars(part).get("__doc__") or NO_DOCSTRING),
        _section("options", options),
        _section("declared", facts),
    ]
    return "\n\n".join(parts)


def _default(value: Any) -> str:
    return "required" if value is ... else f"default {value!r}"


def _section(title: str, rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return f"{title}: none"
    return f"{title}:\n" + "\n".join(f"  {line}" for line in columns(rows))


def columns(rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Rows as lines with aligned columns; to fit a width, the widest columns are shortened."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = None if width is None else width - 2 * (len(widths) - 1)
    while room is not None and sum(widths) > room and max(widths) > LEAST:
        widths[widths.index(max(widths))] -= 1
    return [
        "  ".join(
            _shortened(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


LEAST = 8
"""No column is made narrower than this."""


def _shortened(cell: str, size: int) -> str:
    """The end of a cell, which tells most: that of a path, of a file, of a number."""
    return cell if len(cell) <= size else f"…{cell[len(cell) - size + 1 :]}"
