"""Names for parts, strict configs, and the builder that turns a config into an encoder."""

from typing import TYPE_CHECKING

import lazy_loader

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
from registry.table import DuplicateNameError, Table, UnknownNameError, register

if TYPE_CHECKING:
    from registry.builder import build_encoder as build_encoder
    from registry.config import EncoderConfig as EncoderConfig
    from registry.problems import ConfigError as ConfigError

__getattr__, __dir__, _lazy = lazy_loader.attach(
    __name__,
    submod_attrs={
        "builder": ["build_encoder"],
        "config": ["EncoderConfig"],
        "problems": ["ConfigError"],
    },
)

__all__ = [
    "ConfigError",
    "DuplicateNameError",
    "EncoderConfig",
    "Table",
    "UnknownNameError",
    "attentions",
    "build_encoder",
    "feedforwards",
    "initializers",
    "masks",
    "norm_placements",
    "norms",
    "positions",
    "readouts",
    "register",
]
