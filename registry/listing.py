"""What `list` and `show` print: the parts of each kind, and the presets."""

from collections.abc import Iterator

from registry import presets
from registry.describing import describe, mentions, summary
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
        yield f"no part mentions {search!r}"


def _sections(kind: str | None, search: str) -> Iterator[Section]:
    if kind not in PRESETS:
        for table in [_table_of(kind)] if kind else [TABLES[key] for key in sorted(TABLES)]:
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


def shown(kind: str, name: str) -> str:
    """A part or a preset as text.

    Raises:
        UnknownNameError: If there is no such kind or name.
    """
    if kind not in PRESETS:
        return describe(_table_of(kind)[name])
    file, about = presets.file_of(name), presets.about(name)
    keys = file.read_text(encoding="utf-8").splitlines()[len(about.splitlines()) :]
    return "\n".join([str(file), "", about, *keys])
