"""The options of a part: the arguments of its constructor."""

import inspect
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from registry.errors import ConfigError, Problem

GIVEN = ("self", "dims", "make_norm")
"""What the builder hands to a constructor; every other argument is an option."""


RESERVED = frozenset(
    {"name", "options", "copy", "json", "dict", "schema", "validate", "construct", "model_config"}
)
"""Names that mean something to every choice."""


def options_of(part: type) -> Iterator[tuple[str, Any, Any]]:
    """The options of a class: name, annotation and default (`...` where there is none).

    Raises:
        ConfigError: If its constructor takes `*args`, `**kwargs` or an option without annotation.
    """
    if part.__init__ is object.__init__:
        return
    try:
        hints = get_type_hints(part.__init__)
    except NameError as error:
        rule = f"{part.__qualname__} has an annotation that cannot be resolved: {error}"
        raise ConfigError([Problem("", rule)]) from error
    for name, parameter in inspect.signature(part.__init__).parameters.items():
        if name in GIVEN:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            rule = (
                f"{part.__qualname__} takes {parameter}: name each option, with a type and a "
                "default, since that signature is the config schema"
            )
            raise ConfigError([Problem("", rule)])
        if name in RESERVED:
            rule = f"{part.__qualname__}: an option cannot be called {name!r}; choose another name"
            raise ConfigError([Problem("", rule)])
        if name not in hints:
            rule = f"{part.__qualname__}: the option {name!r} needs a type annotation"
            raise ConfigError([Problem("", rule)])
        default = ... if parameter.default is parameter.empty else parameter.default
        yield name, hints[name], default


def holds_tensor(annotation: Any) -> bool:
    """Is an option of this type made of a tensor, which no config can hold?"""
    text = f"{getattr(annotation, '__module__', '')} {annotation!r}"
    return "Tensor" in text or any(holds_tensor(inner) for inner in get_args(annotation))
