"""Sequences of records that can become a table."""

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from store.records import Score

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingTypeStubs]

# Declared, so that a column has one type whether or not the rows at hand hold a missing value.
FRAME_TYPES: dict[Any, str] = {
    int: "int64",
    int | None: "Int64",
    float | None: "float64",
}

# What few readers of a table want; the records have it.
HIDDEN: dict[type, set[str]] = {Score: {"status", "created_at", "source"}}

T = TypeVar("T")


class Records(tuple[T, ...], Generic[T]):
    """An immutable sequence of records of one kind that can become a table."""

    kind: type[T]
    leading: tuple[str, ...]

    def __new__(
        cls, items: Iterable[T], kind: type[T], leading: Iterable[str] = ()
    ) -> "Records[T]":
        """Hold records of a kind; `leading` names the columns that their `group` brings."""
        self = super().__new__(cls, items)
        self.kind, self.leading = kind, tuple(leading)
        return self

    def __getnewargs__(self) -> tuple[tuple[T, ...], type[T], tuple[str, ...]]:
        return tuple(self), self.kind, self.leading

    def columns(self) -> list[str]:
        """Return the names of the table's columns: the fields, then the options that vary."""
        options = {key for record in self for key in getattr(record, "options", {})}
        names = [*self.leading, *columns_of(self.kind, options)]
        return list(dict.fromkeys(names))

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per record, all with the keys that `columns` lists."""
        columns = self._table()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def frame(self) -> "pandas.DataFrame":
        """Return a pandas table with the columns that `columns` lists."""
        import pandas  # pyright: ignore[reportMissingTypeStubs]

        table: Any = pandas.DataFrame(self._table())
        kinds: dict[str, str] = {
            each.name: FRAME_TYPES[each.type]
            for each in fields(self._dataclass)
            if each.type in FRAME_TYPES
        }
        return table.astype(kinds)

    @property
    def _dataclass(self) -> Any:
        return self.kind

    def _table(self) -> dict[str, list[Any]]:
        columns = self.columns()
        rows = [row_of(record, columns) for record in self]
        return {name: [row[name] for row in rows] for name in columns}


def columns_of(kind: type[Any], options: Iterable[str] = ()) -> list[str]:
    """Return the columns of a table of such records: their fields, then the options."""
    hidden = HIDDEN.get(kind, set[str]()) | {"options", "group"}
    names = [each.name for each in fields(kind) if each.name not in hidden]
    return names + sorted(set(options) - set(names))


def row_of(record: object, columns: Iterable[str]) -> dict[str, Any]:
    """Return a record as a row of the table with these columns."""
    own = vars(record)
    beside: dict[str, Any] = {**own.get("options", {}), **own.get("group", {})}
    return {name: own[name] if name in own else beside.get(name) for name in columns}
