"""The `where` language: Python's comparisons, checked name by name and turned into SQL.

    position in ("rope", "alibi") and length >= 64 and not value < 0.9

A missing value equals None only, differs from everything else, and is neither smaller nor larger
than anything. So `not` means not, as in Python, and never "unknown" as in SQL.
"""

import ast
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, and_, false, func, literal, not_, or_

from store.errors import StoreError, nearest

KINDS = (
    "position",
    "feedforward",
    "norm",
    "norm_placement",
    "mask",
    "attention",
    "readout",
    "initializer",
)
ALLOWED = (
    "allowed are names, dotted config keys, text, numbers, True, False, None, lists, tuples, "
    "and, or, not, in, is None and the comparisons == != < <= > >="
)
MAX_DEPTH = 100

Column: TypeAlias = ColumnElement[Any]
Keys: TypeAlias = Callable[[], Mapping[str, set[str]]]
ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Column]] = {
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
}
EQUAL = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)


def compile_filter(text: str, columns: Mapping[str, Column], config: Column, keys: Keys) -> Column:
    """Return the SQL condition that a `where` text means; its values travel as parameters.

    `columns` are the names that stand for columns, `config` is the column that holds each run's
    config as JSON, and `keys` gives the dotted config keys that some run has, each with the kinds
    of value found there (see `value_kind`).

    Raises:
        StoreError: If the text is not of the language or names what is not there; the offending
            part is shown with its place.
    """
    return _Compiler(text, columns, config, keys).condition()


def kind_column(config: Column, kind: str) -> Column:
    """Return the name of a run's part of this kind, from its config."""
    # A part without options may be stored as its bare name, a mask as an expression.
    return func.coalesce(
        json_value(config, f"encoder.{kind}.name", ""), json_value(config, f"encoder.{kind}", "")
    )


def json_value(config: Column, key: str, like: object) -> Column:
    """Return the value under a dotted key of a JSON column, typed as what it is compared with."""
    path: Any = config[tuple(key.split("."))]
    if isinstance(like, bool):
        return path.as_boolean()
    return path.as_float() if isinstance(like, int | float) else path.as_string()


class _Compiler:
    def __init__(
        self, text: str, columns: Mapping[str, Column], config: Column, keys: Keys
    ) -> None:
        self.text = text.strip()
        self.columns = columns
        self.config = config
        self.keys = keys
        self.known_keys: Mapping[str, set[str]] | None = None

    def condition(self) -> Column:
        try:
            tree = ast.parse(self.text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            place = f" at column {error.offset}" if isinstance(error, SyntaxError) else ""
            reason = error.msg if isinstance(error, SyntaxError) else str(error)
            raise StoreError(f"where {self.text!r}: {reason}{place}; {ALLOWED}") from error
        return self.boolean(tree.body, 0)

    def boolean(self, node: ast.expr, depth: int) -> Column:
        if depth > MAX_DEPTH:
            raise self.refusal(node, f"is nested more than {MAX_DEPTH} deep")
        match node:
            case ast.BoolOp(op=ast.And()):
                return and_(*(self.boolean(each, depth + 1) for each in node.values))
            case ast.BoolOp():
                return or_(*(self.boolean(each, depth + 1) for each in node.values))
            case ast.UnaryOp(op=ast.Not()):
                return not_(self.boolean(node.operand, depth + 1))
            case ast.Compare():
                sides = [node.left, *node.comparators]
                pairs = zip(sides, node.ops, sides[1:], strict=False)
                return and_(*(self.comparison(left, op, right) for left, op, right in pairs))
            case ast.Name() | ast.Attribute():
                raise self.refusal(node, "is not a comparison; write it == True")
            case _:
                raise self.refusal(node, f"is not a comparison; {ALLOWED}")

    def comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Column:
        if isinstance(op, ast.In | ast.NotIn):
            return self.membership(left, op, right)
        names = [node for node in (left, right) if self.is_name(node)]
        values = [self.value(node) for node in (left, right) if not self.is_name(node)]
        if not names:
            raise self.refusal(left, "is compared without a name; one side must be a name")
        like = values[0] if values else ""
        if isinstance(op, ast.Is | ast.IsNot) and (not values or like is not None):
            raise self.refusal(right, "cannot follow `is`, which is for None; write ==")
        sides = [
            self.column(node, like) if self.is_name(node) else literal_value(self.value(node))
            for node in (left, right)
        ]
        if isinstance(op, EQUAL):
            same = sides[0].is_not_distinct_from(sides[1])
            return same if isinstance(op, ast.Eq | ast.Is) else not_(same)
        if like is None or isinstance(like, list):
            raise self.refusal(right, "has no order; compare it with == or !=")
        for node in names if values else []:
            self.require_order(node, like)
        return func.coalesce(ORDER[type(op)](sides[0], sides[1]), false())

    def membership(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Column:
        if not self.is_name(left):
            raise self.refusal(left, "cannot stand before `in`; a name must")
        if not isinstance(right, ast.List | ast.Tuple):
            raise self.refusal(right, 'cannot follow `in`; write a list such as ("a", "b")')
        values = [self.value(node) for node in right.elts]
        same = [
            self.column(left, value).is_not_distinct_from(literal_value(value)) for value in values
        ]
        among = or_(false(), *same)
        return among if isinstance(op, ast.In) else not_(among)

    def is_name(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name | ast.Attribute)

    def value(self, node: ast.expr) -> object:
        """Return a literal; nothing is evaluated."""
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str()):
                value = node.value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                value = -number
            case ast.List() | ast.Tuple():
                return [self.value(each) for each in node.elts]
            case _:
                raise self.refusal(node, f"is not a value; {ALLOWED}")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise self.refusal(node, "is too large a number")
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            raise self.refusal(node, "is not finite")
        if isinstance(value, str) and not storable(value):
            raise self.refusal(node, "holds a character that no database takes")
        return value

    def column(self, node: ast.expr, like: object) -> Column:
        name = self.dotted(node)
        if name in self.columns:
            return self.typed(node, name, like)
        if name in KINDS:
            if like is not None and not isinstance(like, str):
                raise self.refusal(node, f"is text and cannot be compared with {like!r}")
            return kind_column(self.config, name)
        if self.known_keys is None:
            self.known_keys = self.keys()
        if name not in self.known_keys:
            known = {*self.columns, *KINDS, *self.known_keys}
            raise self.refusal(node, f"is not known here; {nearest(name, known)}")
        kinds = self.known_keys[name]
        if value_kind(like) not in kinds | {"null"} and like != "":
            raise self.refusal(
                node, f"holds {words(kinds)}, never {value_kind(like)} like {like!r}"
            )
        return json_value(self.config, name, like)

    def require_order(self, node: ast.expr, like: object) -> None:
        """Refuse to order unlike values, which databases do by rules of their own."""
        kinds = (self.known_keys or {}).get(self.dotted(node), {value_kind(like)})
        if not kinds <= {value_kind(like), "null"}:
            raise self.refusal(node, f"holds {words(kinds)} and cannot be ordered against {like!r}")

    def typed(self, node: ast.expr, name: str, like: object) -> Column:
        column = self.columns[name]
        is_text = not issubclass(column.type.python_type, int | float)
        if like is None or like == "":
            return column
        if isinstance(like, list) or isinstance(like, str) is not is_text:
            kind = "text" if is_text else "a number"
            raise self.refusal(node, f"is {kind} and cannot be compared with {like!r}")
        return column

    def dotted(self, node: ast.expr) -> str:
        parts: list[str] = []
        inner = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            raise self.refusal(node, f"is not a name; {ALLOWED}")
        return ".".join([inner.id, *reversed(parts)])

    def refusal(self, node: ast.expr, why: str) -> StoreError:
        part = ast.get_source_segment(self.text, node) or ""
        return StoreError(
            f"where {self.text!r}: {' '.join(part.split())!r} (column {node.col_offset + 1}) {why}"
        )


def literal_value(value: object) -> Column:
    """Return a value as a bound parameter; a list becomes JSON text, as a JSON column gives it."""
    if isinstance(value, list):
        value = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return literal(value)


def value_kind(value: object) -> str:
    """Return what kind of JSON value this is: text, number, list, mapping or null."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, list) else "mapping"


def words(kinds: set[str]) -> str:
    """Join kinds of value for a message."""
    return " or ".join(sorted(kinds))


def storable(text: str) -> bool:
    """Tell whether a database takes this text."""
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text
