"""Values inside JSON columns as numbers, truths or lists, where a key may hold other kinds too.

SQLite takes what is there; PostgreSQL gives up a whole query at the first value that it cannot
cast, so it must look first.
"""

from typing import Any

from sqlalchemy import Boolean, ColumnElement, Float, Text, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

NUMBER = """
CASE json_typeof({json}) WHEN 'number' THEN CAST({text} AS FLOAT)
WHEN 'boolean' THEN CASE {text} WHEN 'true' THEN 1.0 ELSE 0.0 END END
"""
TRUTH = """
CASE WHEN {text} IN ('true', '1', '1.0') THEN true
WHEN {text} IN ('false', '0', '0.0') THEN false END
"""


class JsonNumber(FunctionElement[Any]):
    """A value in a JSON column as a number, true and false as 1 and 0, null where it is neither."""

    type = Float()
    inherit_cache = True

    def __init__(self, path: Any) -> None:
        super().__init__(path.as_float(), path, path.as_string())


class JsonTruth(FunctionElement[Any]):
    """A value in a JSON column as a truth, 1 and 0 as true and false."""

    type = Boolean()
    inherit_cache = True

    def __init__(self, path: Any) -> None:
        super().__init__(path.as_boolean(), path, path.as_string())


class JsonList(FunctionElement[Any]):
    """A value in a JSON column, to be compared with a list."""

    type = Text()
    inherit_cache = True

    def __init__(self, path: Any) -> None:
        super().__init__(path.as_string(), path, path.as_string())


class ListLiteral(FunctionElement[Any]):
    """A list as JSON text, written as SQLite writes it."""

    type = Text()
    inherit_cache = True

    def __init__(self, text: str) -> None:
        super().__init__(literal(text))


@compiles(JsonNumber)
@compiles(JsonTruth)
@compiles(JsonList)
@compiles(ListLiteral)
def _as_it_is(element: FunctionElement[Any], compiler: Any, **options: Any) -> str:
    return compiler.process(_clauses(element)[0], **options)


@compiles(JsonList, "postgresql")
def _list(element: FunctionElement[Any], compiler: Any, **options: Any) -> str:
    return _filled("CAST({json} AS JSONB)", element, compiler, options)


@compiles(ListLiteral, "postgresql")
def _list_literal(element: FunctionElement[Any], compiler: Any, **options: Any) -> str:
    # A server keeps the text of JSON as it came, with its spaces.
    return f"CAST({compiler.process(_clauses(element)[0], **options)} AS JSONB)"


@compiles(JsonNumber, "postgresql")
def _number(element: FunctionElement[Any], compiler: Any, **options: Any) -> str:
    return _filled(NUMBER, element, compiler, options)


@compiles(JsonTruth, "postgresql")
def _truth(element: FunctionElement[Any], compiler: Any, **options: Any) -> str:
    return _filled(TRUTH, element, compiler, options)


def _filled(text: str, element: FunctionElement[Any], compiler: Any, options: Any) -> str:
    _, json, words = _clauses(element)
    told = {"json": compiler.process(json, **options), "text": compiler.process(words, **options)}
    return f"({' '.join(text.split())})".format(**told)


def _clauses(element: FunctionElement[Any]) -> list[ColumnElement[Any]]:
    return list(element.clauses)
