"""What `list` and `show` print: the parts of each kind, and the presets."""

import ast
import importlib.util
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from registry import presets
from registry.errors import ConfigError, Problem, UnknownNameError, nearest
from registry.options import options_of
from registry.registry import REGISTRIES, Registry, registry_of

PRESETS = (presets.KEY, f"{presets.KEY}s")
"""The words that stand for presets where others stand for a kind of part."""

MARKDOWN = "python -m registry list --markdown"
"""The command that writes `docs/parts.md`."""

Section = tuple[str, dict[str, str]]
"""A heading, and the first line of each name under it."""


def listed(kind: str | None, search: str) -> Iterator[str]:
    """The names of a kind, or of all of them and the presets, each with its first line.

    Raises:
        UnknownNameError: If there is no such kind.
    """
    shown = [(title, names) for title, names in _sections(kind, search) if names or not search]
    width = max((len(name) for _, names in shown for name in names), default=0)
    for number, (title, names) in enumerate(shown):
        yield from [""] * (number > 0)
        yield title
        yield from (f"  {name:{width}}  {line}" for name, line in names.items())
    if not shown:
        yield f"no part mentions {search!r}{_hint(kind, search)}"


def markdown(kind: str | None, search: str) -> Iterator[str]:
    """The same as `listed`, as tables in Markdown.

    Raises:
        UnknownNameError: If there is no such kind.
    """
    yield from ["# Parts", "", f"Written by `{MARKDOWN}`."]
    for title, names in _sections(kind, search):
        if names:
            yield from ["", f"## {title}", "", "| name | what it is |", "| --- | --- |"]
            lines = ((name, line.replace("|", "\\|")) for name, line in names.items())
            yield from (f"| `{name}` | {line} |" for name, line in lines)


def _hint(kind: str | None, search: str) -> str:
    """The words nearest to one that nobody mentions."""
    texts = [presets.about(name) for name in presets.names()] if kind in (None, *PRESETS) else []
    for table in _tables(kind):
        texts += [f"{name} {docstring(table, name)}" for name in table]
    known = {word for text in texts for word in re.findall(r"\w{3,}", text.casefold())}
    near = nearest(search.casefold(), known, count=3, cutoff=0.7)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _tables(kind: str | None) -> Iterator[Registry]:
    if kind is None:
        yield from (REGISTRIES[key] for key in sorted(REGISTRIES))
    elif kind not in PRESETS:
        yield _table_of(kind)


def _sections(kind: str | None, search: str) -> Iterator[Section]:
    for table in _tables(kind):
        names = [name for name in table if mentions(table, name, search)]
        yield f"{table.kind}: {table.about}", {name: summary(table, name) for name in names}
    if kind is None or kind in PRESETS:
        texts = {name: presets.about(name) for name in presets.names()}
        found = {name: text for name, text in texts.items() if _says(name, text, search)}
        lines = {name: text.split("\n", 1)[0] for name, text in found.items()}
        yield "preset: a ready architecture, under the keys of a config of yours", lines


def _says(name: str, text: str, word: str) -> bool:
    return word.casefold() in f"{name} {text}".casefold()


def _table_of(kind: str) -> Registry:
    try:
        return registry_of(kind)
    except UnknownNameError as error:
        raise UnknownNameError("kind", kind, sorted([*error.known, presets.KEY])) from None


def shown(words: Sequence[str]) -> str:
    """A part or a preset as text: that of a kind and a name, or the only one of a name.

    Raises:
        UnknownNameError: If there is no such kind or name.
        ConfigError: If several kinds have the name, it is that of a kind, or there are more words.
    """
    if len(words) > 2:
        rule = f"a part is a kind and a name, or a name alone; got {' '.join(words)!r}"
        raise ConfigError([Problem("show", rule)])
    name = words[-1]
    kind = words[0] if len(words) == 2 else _only_kind_of(name)
    if kind not in PRESETS:
        return describe(_table_of(kind)[name])
    file, about = presets.file_of(name), presets.about(name)
    keys = file.read_text(encoding="utf-8").splitlines()[len(about.splitlines()) :]
    return "\n".join([str(file), "", about, *keys])


def _only_kind_of(name: str) -> str:
    known = {table.kind: list(table) for table in _tables(None)}
    known[presets.KEY] = presets.names()
    kinds = [kind for kind, names in known.items() if name in names]
    if len(kinds) == 1:
        return kinds[0]
    plurals = {table.plural for table in _tables(None)}
    if not kinds and name not in {*known, *plurals, *PRESETS}:
        raise UnknownNameError(
            "part", name, sorted({one for names in known.values() for one in names})
        )
    what = f"several kinds have a part named {name!r}" if kinds else f"{name!r} is a kind of part"
    ways = [f"show {kind} {name}" for kind in kinds] or [f"show {name} NAME", f"list {name}"]
    raise ConfigError([Problem("show", f"{what}; say {' or '.join(ways)}")])


BESIDE_FACTS = ("name", "examples", "waives")
NO_DOCSTRING = "(no docstring)"
_ASSIGN = (ast.Assign, ast.AnnAssign)


def summary(table: Registry, name: str) -> str:
    """The first line of a part's docstring."""
    return docstring(table, name).split("\n", 1)[0]


def docstring(table: Registry, name: str) -> str:
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


def mentions(table: Registry, name: str, word: str) -> bool:
    """Does a part's name or docstring hold this word, in capitals or not?"""
    return word.casefold() in f"{name} {docstring(table, name)}".casefold()


def source_of(table: Registry, name: str) -> Path:
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
