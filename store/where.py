"""Which runs and scores a query is about: keywords, and the `where` language.

`where` has Python's comparisons, checked name by name and turned into SQL:

    position in ("rope", "alibi") and length >= 64 and not value < 0.9

A missing value equals None only, differs from everything else, and is neither smaller nor larger
than anything. So `not` means not, as in Python, and never "unknown" as in SQL. A time is compared
with a day or an instant in ISO 8601, in UTC unless it names another zone.
"""

import ast
import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, TypeAlias, cast

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Float,
    Text,
    and_,
    false,
    func,
    literal,
    not_,
    or_,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import FunctionElement

from store.encoding import storable_text, unwrap_numpy
from store.errors import StoreError, require_known, suggest
from store.models import ConfigRow, CurveRow, Instant, RunRow, ScoreRow, StudyRow, Table
from store.records import PHASES, STATUSES, Run

Column: TypeAlias = ColumnElement[Any]
Keys: TypeAlias = Callable[[], Mapping[str, set[str]]]

KINDS = (
    *("position", "feedforward", "norm", "norm_placement", "mask", "attention", "readout"),
    "initializer",
)
ALLOWED = (
    "allowed are names, dotted config keys, text, numbers, True, False, None, lists, tuples, "
    "and, or, not, in, is None and the comparisons == != < <= > >="
)
MAX_DEPTH = 100
ONE_SIGN = re.compile("[^=!<>]=[^=]")
ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Column]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
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

    @cached_property
    def known_keys(self) -> Mapping[str, set[str]]:
        return self.keys()

    def condition(self) -> Column:
        try:
            tree = ast.parse(self.text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            place, reason = "", str(error)
            if isinstance(error, SyntaxError):
                place, reason = f" at column {error.offset}", error.msg
                # The parser gives the end of a text as the beginning of a line that is not there.
                if not 0 < (error.offset or 0) <= len(self.text):
                    end = len(self.text)
                    place = f' at its end, column {end}: a comparison is like arm == "rope"'
            hint = "; equal is written ==" if ONE_SIGN.search(self.text) else ""
            raise StoreError(f"where {self.text!r}: {reason}{place}{hint}; {ALLOWED}") from error
        return self.boolean(tree.body, 0)

    def boolean(self, node: ast.expr, depth: int) -> Column:
        if depth > MAX_DEPTH:
            raise self.refusal(node, f"is nested more than {MAX_DEPTH} deep")
        match node:
            case ast.BoolOp():
                join = and_ if isinstance(node.op, ast.And) else or_
                return join(*(self.boolean(each, depth + 1) for each in node.values))
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
        names = [node for node in (left, right) if is_name(node)]
        values = [self.value(node) for node in (left, right) if not is_name(node)]
        if not names:
            raise self.refusal(left, "is compared without a name; one side must be a name")
        like = values[0] if values else self.like(names)
        if isinstance(op, ast.Is | ast.IsNot) and (not values or like is not None):
            raise self.refusal(right, "cannot follow `is`, which is for None; write ==")
        sides = [
            self.side(node, like) if is_name(node) else self.literal(node, names)
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
        if not is_name(left):
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
        if isinstance(value, str) and storable_text(value) != value:
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
        column = self.columns.get(self.dotted(node))
        return column is not None and isinstance(column.type, Instant)

    def side(self, node: ast.expr, like: object) -> Side:
        """Return what a name stands for, typed as what it is compared with."""
        name, kinds = self.dotted(node), self.kinds(node)
        if value_kind(like) not in kinds | {"null"} and like != "":
            raise self.refusal(
                node, f"holds {words(kinds)}, never {value_kind(like)} like {like!r}"
            )
        if name in self.columns:
            return Side(self.columns[name], "row")
        return Side(kind_value(name) if name in KINDS else key_value(name, like), "config")

    def like(self, names: Sequence[ast.expr]) -> object:
        """Return a value of the kind that names hold which are compared with each other."""
        return 0 if all(self.kinds(node) <= {"number", "null"} for node in names) else ""

    def kinds(self, node: ast.expr) -> set[str]:
        """Return the kinds of value that a name holds; see `value_kind`."""
        name = self.dotted(node)
        if name in KINDS:
            return {"text"}
        if name in self.columns:
            number = issubclass(self.columns[name].type.python_type, int | float)
            return {"number" if number else "text"}
        if name not in self.known_keys:
            known = {*self.columns, *KINDS, *self.known_keys}
            raise self.refusal(node, f"is not known here; {suggest(name, known)}")
        return self.known_keys[name]

    def require_order(self, node: ast.expr, like: object) -> None:
        """Refuse to order unlike values, which databases do by rules of their own."""
        kinds = self.kinds(node)
        if not kinds <= {value_kind(like), "null"}:
            raise self.refusal(node, f"holds {words(kinds)} and cannot be ordered against {like!r}")

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


def is_name(node: ast.expr) -> bool:
    """Tell a name, dotted or not, from a value."""
    return isinstance(node, ast.Name | ast.Attribute)


def compare(sides: Sequence[Side], build: Callable[[Any, Any], Column]) -> Column:
    """Return a comparison; among configs alone where no side is of a row."""
    if all(side.home != "row" for side in sides):
        return config_is(build(*(side.column for side in sides)))
    return build(*(in_run(one.column) if one.home == "config" else one.column for one in sides))


def literal_value(value: object) -> ColumnElement[Any]:
    """Return a value as a bound parameter; a list becomes JSON text, as a JSON column gives it."""
    if isinstance(value, list):
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return JsonList(literal(text))
    return literal(value)


def instant(text: str) -> ColumnElement[datetime] | None:
    """Return the instant that a text in ISO 8601 names, as a bound parameter; None if none.

    A text may stop at any part: "2026" is the beginning of that year. Without a zone it is in UTC.
    """
    for rest in ("", "-01", "-01-01"):
        try:
            moment = datetime.fromisoformat(text.strip() + rest)
            utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            continue
        return literal(utc, Instant())
    return None


KIND_OF: Mapping[type, str] = {
    **{type(None): "null", str: "text", list: "list"},
    **dict.fromkeys((bool, int, float), "number"),
}


def value_kind(value: object) -> str:
    """Return what kind of JSON value this is: text, number, list, mapping or null."""
    return KIND_OF.get(type(value), "mapping")


def words(kinds: set[str]) -> str:
    """Join kinds of value for a message."""
    return " or ".join(sorted(kinds - {"null"} or kinds))


MATCHED = ("study", "task", "arm", "status", "seed")
CHOICES = {"phase": PHASES, "status": STATUSES}


def _columns(table: type[Table], *names: str) -> dict[str, Column]:
    return {name: table.__table__.c[name] for name in names}


RUN_COLUMNS = _columns(
    RunRow, *(each.name for each in fields(Run) if each.name not in ("config", "provenance"))
)
SCORE_COLUMNS = _columns(
    ScoreRow,
    *("run_id", "split", "length", "metric", "bin", "n", "correct", "value", "shift", "imputed"),
)
CURVE_COLUMNS = _columns(CurveRow, "run_id", "step", "metric", "value")
SUPERSEDED: Column = RunRow.__table__.c["superseded"]


@dataclass(frozen=True)
class Selection:
    """Which runs, or scores or curves of them, a query is about; see `store.Results`."""

    where: str | None = None
    phase: object = "confirm"
    current: bool = False
    match: Mapping[str, object] = field(default_factory=dict[str, object])
    superseded: bool = False

    def conditions(
        self, session: Session, extra: Mapping[str, Column] | None = None
    ) -> list[Column]:
        """Return the SQL conditions; `extra` are the columns beside those of a run."""
        beside = extra or {}
        found: list[Column] = []
        if self.phase not in (None, "all"):
            found.append(_matches(RUN_COLUMNS["phase"], "phase", self.phase))
        if self.current or self.superseded:
            found.append(SUPERSEDED.is_(self.superseded))
        own = {name: column for name, column in beside.items() if name not in ("value", "run_id")}
        columns: dict[str, Column] = {name: RUN_COLUMNS[name] for name in MATCHED} | own
        for name, value in self.match.items():
            known = {"where", "phase", "current", *columns, *KINDS}
            require_known(name, known, f"results cannot be chosen by {name!r}")
            if name in KINDS:
                found.append(config_is(_matches(kind_value(name), name, value)))
            else:
                found.append(_matches(columns[name], name, value))
        if self.where is not None:
            names = {**RUN_COLUMNS, "superseded": SUPERSEDED, **beside}
            found.append(compile_filter(self.where, names, lambda: known_keys(session)))
        return found

    def is_about(self, extra: Mapping[str, Column]) -> bool:
        """Does the choice rest on more than the runs: on columns of their scores or curves?"""
        return bool(set(self.match) & set(extra)) or self.where is not None


def known_keys(session: Session) -> dict[str, set[str]]:
    """Return the dotted config keys that any run has, each with the kinds of its values."""
    found: dict[str, set[str]] = {}
    shared = session.scalars(select(StudyRow.constants)).all()
    own = session.scalars(select(ConfigRow.options)).all()
    for options in (*shared, *own):
        for key, value in (options or {}).items():
            found.setdefault(key, set()).add(value_kind(value))
    return found


def _matches(column: Column, name: str, value: object) -> Column:
    several = isinstance(value, list | tuple | set | frozenset | range)
    items = cast("Iterable[object]", value) if several else [value]
    values = [unwrap_numpy(each) for each in items]
    for each in values:
        if name in CHOICES:
            require_known(cast("str", each), CHOICES[name], f"no {name} is named {each!r}")
        unlike = each is not None and isinstance(each, str) is not (column.type.python_type is str)
        if unlike or not isinstance(each, str | int | None):
            raise StoreError(f"{name} cannot be {each!r}")
    given: list[Any] = [each for each in values if each is not None]
    among = column.in_(given)
    return among if None not in values else among | column.is_(None)


CONFIG_ID: Column = RunRow.__table__.c["config_id"]
_CONFIGS = ConfigRow.__table__.c


def kind_value(kind: str) -> Column:
    """Return the name of a config's part of this kind."""
    # A part without options may be stored as its bare name, a mask as an expression.
    return func.coalesce(key_value(f"encoder.{kind}.name", ""), key_value(f"encoder.{kind}", ""))


def key_value(key: str, like: object) -> Column:
    """Return the value under a dotted key of a config, typed as what it is compared with."""
    path: Any = _CONFIGS["config"][tuple(key.split("."))]
    if isinstance(like, bool):
        return JsonTruth(path.as_boolean(), path)
    if isinstance(like, list):
        return JsonList(path.as_string())
    if isinstance(like, int | float):
        return JsonNumber(path.as_float(), path)
    return path.as_string()


def whole_value(key: str) -> Column:
    """Return the value under a dotted key of a config, of whatever type it is."""
    return _CONFIGS["config"][tuple(key.split("."))]


def config_is(condition: Column) -> Column:
    """Return the condition on a run that its config meets one; each config is looked at once."""
    return CONFIG_ID.in_(select(_CONFIGS["id"]).where(condition))


def in_run(value: Column) -> Column:
    """Return a value of a config as one of the run that has it."""
    return select(value).where(_CONFIGS["id"] == CONFIG_ID).scalar_subquery()


class OfJson(FunctionElement[Any]):
    """What SQLite has in JSON, as a value to compare with; `words` make it so on a server.

    They may name what SQLite takes, `own`; the `json` itself; and its `text`.
    """

    inherit_cache = True
    words: ClassVar[str]

    def __init__(self, own: Any, path: Any = None) -> None:
        super().__init__(own, *(() if path is None else (path, path.as_string())))


class JsonNumber(OfJson):
    """A value in a JSON column as a number, true and false as 1 and 0, null where it is neither."""

    type = Float()
    inherit_cache = True
    words = """(CASE json_typeof({json}) WHEN 'number' THEN CAST({text} AS FLOAT)
        WHEN 'boolean' THEN CASE {text} WHEN 'true' THEN 1.0 ELSE 0.0 END END)"""


class JsonTruth(OfJson):
    """A value in a JSON column as a truth, 1 and 0 as true and false."""

    type = Boolean()
    inherit_cache = True
    words = """(CASE WHEN {text} IN ('true', '1', '1.0') THEN true
        WHEN {text} IN ('false', '0', '0.0') THEN false END)"""


class JsonList(OfJson):
    """A list as JSON text, without spaces, as SQLite writes it."""

    type = Text()
    inherit_cache = True
    words = "CAST({own} AS JSONB)"


@compiles(OfJson)
def _as_it_is(element: OfJson, compiler: Any, **options: Any) -> str:
    return compiler.process(next(iter(element.clauses)), **options)


@compiles(OfJson, "postgresql")
def _on_a_server(element: OfJson, compiler: Any, **options: Any) -> str:
    told = [compiler.process(clause, **options) for clause in element.clauses]
    return element.words.format(**dict(zip(("own", "json", "text"), told, strict=False)))
