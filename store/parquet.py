"""Tables as Parquet files, in two passes: what the columns hold, then the rows."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store.errors import StoreError
from store.printing import text

if TYPE_CHECKING:
    from store.writers import Table

BATCH = 10_000


def write_parquet(table: "Table", path: Path) -> None:
    """Write a table as a Parquet file, a batch of rows at a time.

    A column of whole numbers becomes int64, of numbers float64, of instants a UTC timestamp, of
    true and false bool; any other becomes text, JSON where a value has an inside.

    Raises:
        StoreError: If pyarrow is not installed.
    """
    try:
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise StoreError(
            "parquet needs the Python package 'pyarrow': pip install encoder-sandbox[parquet]"
        ) from error
    kinds = _kinds(table.rows(), table.columns)
    types: dict[str, Any] = {
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "instant": pyarrow.timestamp("us", tz="UTC"),
        "text": pyarrow.string(),
    }
    schema: Any = pyarrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    with parquet.ParquetWriter(path, schema) as writer:
        for rows in _batches(table.rows()):
            columns = {
                name: [_cell(row[name], kind) for row in rows] for name, kind in kinds.items()
            }
            writer.write_table(pyarrow.table(columns, schema=schema))


def _kinds(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> dict[str, str]:
    seen: dict[str, set[str]] = {name: set() for name in columns}
    for row in rows:
        for name, kinds in seen.items():
            kinds.add(_kind(row[name]))
    return {name: _widest(kinds - {"none"}) for name, kinds in seen.items()}


def _kind(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    return "instant" if isinstance(value, datetime) else "text"


def _widest(kinds: set[str]) -> str:
    if kinds == {"int", "float"}:
        return "float"
    return kinds.pop() if len(kinds) == 1 else "text"


def _cell(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "text":
        return text(value)
    return float(value) if kind == "float" else value


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    batch: list[Mapping[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    yield batch
