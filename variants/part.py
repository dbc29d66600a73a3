"""What every exchangeable part of an encoder has: a name."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import nn


class Part(nn.Module):
    """A pluggable part of an encoder.

    A part is a class in its own file that extends the contract of its kind. Its constructor takes
    `dims` first and then its own options, each with a type and a default: that signature is its
    config schema. Parameters of linear maps and embeddings are filled by the encoder's
    initializer; every other parameter keeps the value that the constructor gave it.
    """

    name: ClassVar[str]
    initializes_itself: ClassVar[bool] = False
    """True: the encoder's initializer leaves this part's linear maps and embeddings alone."""
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Options with which conformance tries the part, besides those that it finds by itself."""
    waives: ClassVar[Mapping[str, str]] = {}
    """Promises that the part cannot keep, each with the reason."""


def named(name: str, **options: Any) -> Any:
    """The default of an option that is itself a part: what the builder builds from its name.

    Args:
        name: The part's name.
        options: Its options, where they are not its own defaults.
    """
    return {"name": name, **options} if options else name


def positive(name: str, value: float) -> float:
    """The value of an option that lies above 0.

    Raises:
        ValueError: If it does not.
    """
    if value <= 0:
        raise ValueError(f"{name} must be positive; got {name}={value}")
    return value


def at_least(least: int, name: str, value: int) -> int:
    """The value of an option that has a least one.

    Raises:
        ValueError: If it lies below.
    """
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {name}={value}")
    return value
