"""What `list` and `show` print: the parts of each kind, and the presets."""

import re
from collections.abc import Iterator, Sequence

from registry import presets
from registry.describing import describe, docstring, mentions, summary
from registry.nearest import nearest
from registry.problems import ConfigError, Problem
from registry.table import TABLES, Table, UnknownNameError, table_of

PRESETS = (presets.KEY, f"{presets.KEY}s")
"""The words that stand for presets where others stand for a kind of part."""

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


def _hint(kind: str | None, search: str) -> str:
    """The words nearest to one that nobody mentions."""
    texts = [presets.about(name) for name in presets.names()] if kind in (None, *PRESETS) else []
    for table in _tables(kind):
        texts += [f"{name} {docstring(table, name)}" for name in table]
    known = {word for text in texts for word in re.findall(r"\w{3,}", text.casefold())}
    near = nearest(search.casefold(), known, count=3, cutoff=0.7)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _tables(kind: str | None) -> Iterator[Table]:
    if kind is None:
        yield from (TABLES[key] for key in sorted(TABLES))
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


def _table_of(kind: str) -> Table:
    try:
        return table_of(kind)
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
