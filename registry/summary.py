"""What `list` and `show` print: the parts of each kind, and the presets."""

import ast
import importlib.util
import inspect
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from registry import presets
from registry.errors import ConfigError, Problem, UnknownNameError, nearest
from registry.registry import REGISTRIES, Registry, options_of, registry_of

PRESETS = (presets.KEY, f"{presets.KEY}s")
"""The words that stand for presets where others stand for a kind of part."""

MARKDOWN = "python -m registry list --markdown"
"""The command that writes `docs/parts.md`."""


def listed(kind: str | None, search: str) -> Iterator[str]:
    """The names of a kind, or of all of them and the presets, each with its first line.

    Raises:
        UnknownNameError: If there is no such kind.
    """
    shown = [(title, names) for title, names in _found(kind, search) if names or not search]
    width = max((len(name) for _, names in shown for name in names), default=0)
    for number, (title, names) in enumerate(shown):
        yield from [""] * (number > 0)
        yield title
        yield from (f"  {name:{width}}  {line}" for name, line in names.items())
    if not shown:
        texts = (f"{name} {text}" for _, _, found in _catalog(kind) for name, text in found.items())
        known = {word for text in texts for word in re.findall(r"\w{3,}", text.casefold())}
        near = nearest(search.casefold(), known, count=3, cutoff=0.7)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        yield f"no part mentions {search!r}{hint}"


def markdown(kind: str | None, search: str) -> Iterator[str]:
    """The same as `listed`, as tables in Markdown.

    Raises:
        UnknownNameError: If there is no such kind.
    """
    yield from ["# Parts", "", f"Written by `{MARKDOWN}`."]
    for title, names in _found(kind, search):
        if names:
            yield from ["", f"## {title}", "", "| name | what it is |", "| --- | --- |"]
            lines = ((name, line.replace("|", "\\|")) for name, line in names.items())
            yield from (f"| `{name}` | {line} |" for name, line in lines)


def _found(kind: str | None, search: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The heading of each kind, and the first line of each name whose text holds a word."""
    word = search.casefold()
    for _, title, texts in _catalog(kind):
        found = {name: text for name, text in texts.items() if word in f"{name} {text}".casefold()}
        yield title, {name: text.split("\n", 1)[0] for name, text in found.items()}


def _catalog(kind: str | None) -> Iterator[tuple[str, str, dict[str, str]]]:
    tables = [REGISTRIES[key] for key in sorted(REGISTRIES)]
    if kind is not None:
        tables = [] if kind in PRESETS else [_registry_of(kind)]
    for table in tables:
        heading = f"{table.kind}: {table.about}"
        yield table.kind, heading, {name: docstring(table, name) for name in table}
    if kind is None or kind in PRESETS:
        heading = "preset: a ready architecture, under the keys of a config of yours"
        yield presets.KEY, heading, {name: presets.about(name) for name in presets.names()}


def _registry_of(kind: str) -> Registry:
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
        return describe(_registry_of(kind)[name])
    file, about = presets.file_of(name), presets.about(name)
    keys = file.read_text(encoding="utf-8").splitlines()[len(about.splitlines()) :]
    return "\n".join([str(file), "", about, *keys])


def _only_kind_of(name: str) -> str:
    known = {kind: list(table) for kind, table in sorted(REGISTRIES.items())}
    known[presets.KEY] = presets.names()
    kinds = [kind for kind, names in known.items() if name in names]
    if len(kinds) == 1:
        return kinds[0]
    plurals = {table.plural for table in REGISTRIES.values()}
    if not kinds and name not in {*known, *plurals, *PRESETS}:
        raise UnknownNameError("part", name, sorted({*chain.from_iterable(known.values())}))
    what = f"several kinds have a part named {name!r}" if kinds else f"{name!r} is a kind of part"
    ways = [f"show {kind} {name}" for kind in kinds] or [f"show {name} NAME", f"list {name}"]
    raise ConfigError([Problem("show", f"{what}; say {' or '.join(ways)}")])


BESIDE_FACTS = ("name", "examples", "waives")
NO_DOCSTRING = "(no docstring)"


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
    classes = ast.parse(file.read_text(encoding="utf-8")).body
    for node in (node for node in classes if isinstance(node, ast.ClassDef)):
        for line in node.body:
            match line:
                case ast.Assign([ast.Name("name")], ast.Constant(value)) | ast.AnnAssign(
                    ast.Name("name"), value=ast.Constant(value)
                ) if value == name:
                    return ast.get_docstring(node) or NO_DOCSTRING
                case _:
                    pass
    raise LookupError(f"{file} holds no {table.kind} with name = {name!r}")


def source_of(table: Registry, name: str) -> Path:
    """The file of a built-in part."""
    spec = importlib.util.find_spec(f"{table.package}.{name}")
    if spec is None or spec.origin is None:
        raise LookupError(f"{table.package}.{name} has no source file")
    return Path(spec.origin)


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
        (
            name,
            inspect.formatannotation(annotation),
            "required" if default is ... else f"default {default!r}",
        )
        for name, annotation, default in options_of(part)
    ]
    facts = [(name, repr(value)) for name, value in dict(facts_of(part)).items()]
    sections = [
        f"{part.__module__}.{part.__qualname__}\n{inspect.getfile(part)}",
        inspect.cleandoc(vars(part).get("__doc__") or NO_DOCSTRING),
    ]
    for title, rows in (("options", options), ("declared", facts)):
        lines = "".join(f"\n  {line}" for line in columns(rows)) if rows else " none"
        sections.append(f"{title}:{lines}")
    return "\n\n".join(sections)


LEAST = 8
"""No column is made narrower than this."""


def columns(rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Rows as lines with aligned columns; to fit a width, the widest columns are shortened.

    A cell keeps its end, which tells most: that of a path, of a file, of a number.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = None if width is None else width - 2 * (len(widths) - 1)
    while room is not None and sum(widths) > room and max(widths) > LEAST:
        widths[widths.index(max(widths))] -= 1

    def fitted(cell: str, size: int) -> str:
        return cell.ljust(size) if len(cell) <= size else f"…{cell[len(cell) - size + 1 :]}"

    return ["  ".join(map(fitted, row, widths)).rstrip() for row in rows]
