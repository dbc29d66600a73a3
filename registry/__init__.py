"""Names for parts, strict configs, and the builder that turns a config into an encoder."""

from importlib import import_module
from typing import TYPE_CHECKING

from registry.catalog import (
    attentions,
    feedforwards,
    initializers,
    masks,
    norm_placements,
    norms,
    positions,
    readouts,
)
from registry.problems import ConfigError
from registry.table import DuplicateNameError, Table, UnknownNameError, register

if TYPE_CHECKING:
    from registry import conformance
    from registry.builder import build_encoder
    from registry.config import EncoderConfig
    from registry.conformance import check
    from registry.isolation import isolated

__all__ = [
    "ConfigError",
    "DuplicateNameError",
    "EncoderConfig",
    "Table",
    "UnknownNameError",
    "attentions",
    "build_encoder",
    "check",
    "conformance",
    "feedforwards",
    "initializers",
    "isolated",
    "masks",
    "norm_placements",
    "norms",
    "positions",
    "readouts",
    "register",
]

_HOMES = {
    "EncoderConfig": "registry.config",
    "build_encoder": "registry.builder",
    "check": "registry.conformance",
    "isolated": "registry.isolation",
}
"""What is imported when it is asked for: it brings pydantic or torch with it."""


def __getattr__(name: str) -> object:
    if name == "conformance":
        return import_module("registry.conformance")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
