"""Conditions on the configs of runs, which are stored apart from the runs, once each."""

from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, func, select

from store.json_values import JsonList, JsonNumber, JsonTruth
from store.rows import ConfigRow, RunRow

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

Column: TypeAlias = ColumnElement[Any]
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
        return JsonTruth(path)
    if isinstance(like, list):
        return JsonList(path)
    return JsonNumber(path) if isinstance(like, int | float) else path.as_string()


def whole_value(key: str) -> Column:
    """Return the value under a dotted key of a config, of whatever type it is."""
    return _CONFIGS["config"][tuple(key.split("."))]


def config_is(condition: Column) -> Column:
    """Return the condition on a run that its config meets one; each config is looked at once."""
    return CONFIG_ID.in_(select(_CONFIGS["id"]).where(condition))


def in_run(value: Column) -> Column:
    """Return a value of a config as one of the run that has it."""
    return select(value).where(_CONFIGS["id"] == CONFIG_ID).scalar_subquery()
