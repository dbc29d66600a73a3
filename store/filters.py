"""The `where` language: Python's comparisons, checked name by name and turned into SQL.

    position in ("rope", "alibi") and length >= 64 and not value < 0.9

A missing value equals None only, differs from everything else, and is neither smaller nor larger
than anything. So `not` means not, as in Python, and never "unknown" as in SQL. A time is compared
with a day or an instant in ISO 8601, in UTC unless it names another zone.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import and_, false, func, not_, or_

from store.config_columns import KINDS, Column, config_is, in_run, key_value, kind_value
from store.errors import StoreError, nearest
from store.literals import instant, literal_value, storable, value_kind, words
from store.schema import Instant

ALLOWED = (
    "allowed are names, dotted config keys, text, numbers, True, False, None, lists, tuples, "
    "and, or, not, in, is None and the comparisons == != < <= > >="
)
MAX_DEPTH = 100
ONE_SIGN = re.compile("[^=!<>]=[^=]")

Keys: TypeAlias = Callable[[], Mapping[str, set[str]]]
ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Column]] = {
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
}
EQUAL = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a value of the row, of the row's config, or a literal."""

    column: Column
    home: str


def compile_filter(text: str, columns: Mapping[str, Column], keys: Keys) -> Column:
    """Return the SQL condition on runs that a `where` text means; its values are parameters.

    `columns` are the names that stand for columns, and `keys` gives the dotted config keys that
    some run has, each with the kinds of value found there (see `value_kind`).

    Raises:
        StoreError: If the text is not of the language or names what is not there; the offending
            part is shown with its place.
    """
    return _Compiler(text, columns, keys).condition()


class _Compiler:
    def __init__(self, text: str, columns: Mapping[str, Column], keys: Keys) -> None:
        self.text = text.strip()
        self.columns = columns
        self.keys = keys
        self.known_keys: Mapping[str, set[str]] | None = None

    def condition(self) -> Column:
        try:
            tree = ast.parse(self.text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            place = f" at column {error.offset}" if isinstance(error, SyntaxError) else ""
            reason = error.msg if isinstance(error, SyntaxError) else str(error)
            # The parser gives the end of a text as the beginning of a line that is not there.
            if isinstance(error, SyntaxError) and not 0 < (error.offset or 0) <= len(self.text):
                place = f' at its end, column {len(self.text)}: a comparison is like arm == "rope"'
            hint = "; equal is written ==" if ONE_SIGN.search(self.text) else ""
            raise StoreError(f"where {self.text!r}: {reason}{place}{hint}; {ALLOWED}") from error
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
        like = values[0] if values else self.like(names)
        if isinstance(op, ast.Is | ast.IsNot) and (not values or like is not None):
            raise self.refusal(right, "cannot follow `is`, which is for None; write ==")
        sides = [
            self.side(node, like) if self.is_name(node) else self.literal(node, names)
            for node in (left, right)
        ]
        if isinstance(op, EQUAL):
            same = compare(sides, lambda one, other: one.is_not_distinct_from(other))
            return same if isinstance(op, ast.Eq | ast.Is) else not_(same)
        if like is None or isinstance(like, list):
            raise self.refusal(right, "has no order; compare it with == or !=")
        for node in names if values else []:
            self.require_order(node, like)
        order = ORDER[type(op)]
        return compare(sides, lambda one, other: func.coalesce(order(one, other), false()))

    def membership(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Column:
        if not self.is_name(left):
            raise self.refusal(left, "cannot stand before `in`; a name must")
        if not isinstance(right, ast.List | ast.Tuple):
            raise self.refusal(right, 'cannot follow `in`; write a list such as ("a", "b")')
        values = [self.value(node) for node in right.elts]
        sides = [self.side(left, value) for value in values]
        same = [
            side.column.is_not_distinct_from(self.literal(node, [left]).column)
            for side, node in zip(sides, right.elts, strict=True)
        ]
        among = or_(false(), *same)
        if any(side.home == "config" for side in sides):
            among = config_is(among)
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

    def literal(self, node: ast.expr, names: Sequence[ast.expr]) -> Side:
        value = self.value(node)
        if isinstance(value, str) and any(self.is_instant(name) for name in names):
            moment = instant(value)
            if moment is None:
                raise self.refusal(node, "is no time; write one like '2026-01-31T12:00'")
            return Side(moment, "literal")
        return Side(literal_value(value), "literal")

    def is_instant(self, node: ast.expr) -> bool:
        name = self.dotted(node)
        return name in self.columns and isinstance(self.columns[name].type, Instant)

    def side(self, node: ast.expr, like: object) -> Side:
        """Return what a name stands for, typed as what it is compared with."""
        name = self.dotted(node)
        if name in self.columns:
            return Side(self.typed(node, name, like), "row")
        if name in KINDS:
            if like is not None and not isinstance(like, str):
                raise self.refusal(node, f"is text and cannot be compared with {like!r}")
            return Side(kind_value(name), "config")
        kinds = self.kinds(node)
        if value_kind(like) not in kinds | {"null"} and like != "":
            raise self.refusal(
                node, f"holds {words(kinds)}, never {value_kind(like)} like {like!r}"
            )
        return Side(key_value(name, like), "config")

    def like(self, names: Sequence[ast.expr]) -> object:
        """Return a value of the kind that names hold which are compared with each other."""
        return 0 if all(self.is_number(node) for node in names) else ""

    def is_number(self, node: ast.expr) -> bool:
        name = self.dotted(node)
        if name in self.columns:
            return issubclass(self.columns[name].type.python_type, int | float)
        return name not in KINDS and self.kinds(node) <= {"number", "null"}

    def kinds(self, node: ast.expr) -> set[str]:
        """Return the kinds of value that a config key holds."""
        if self.known_keys is None:
            self.known_keys = self.keys()
        name = self.dotted(node)
        if name not in self.known_keys:
            known = {*self.columns, *KINDS, *self.known_keys}
            raise self.refusal(node, f"is not known here; {nearest(name, known)}")
        return self.known_keys[name]

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


def compare(sides: Sequence[Side], build: Callable[[Any, Any], Column]) -> Column:
    """Return a comparison; among configs alone where no side is of a row."""
    if all(side.home != "row" for side in sides):
        return config_is(build(*(side.column for side in sides)))
    return build(*(in_run(one.column) if one.home == "config" else one.column for one in sides))
