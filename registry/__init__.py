"""Names for parts, strict configs, and the builder that turns a config into an encoder."""

from importlib import import_module
from typing import TYPE_CHECKING

from registry.errors import ConfigError, DuplicateNameError, UnknownNameError
from registry.registry import (
    Registry,
    attentions,
    feedforwards,
    initializers,
    isolated,
    masks,
    norm_placements,
    norms,
    positions,
    readouts,
    register,
)

if TYPE_CHECKING:
    from registry import conformance
    from registry.build import build_encoder
    from registry.config import EncoderConfig
    from registry.conformance import check

__all__ = [
    "ConfigError",
    "DuplicateNameError",
    "EncoderConfig",
    "Registry",
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

Table = Registry
"""The former name of `Registry`."""

_HOMES = {
    "EncoderConfig": "registry.config",
    "build_encoder": "registry.build",
    "check": "registry.conformance",
}
"""Names whose modules bring pydantic or torch, which are imported when they are asked for."""


def __getattr__(name: str) -> object:
    if name == "conformance":
        return import_module("registry.conformance")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
