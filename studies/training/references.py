"""Functions named in a config as `package.module:function`, with options for their arguments."""

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_type_hints

from pydantic import BeforeValidator, PydanticUserError, ValidationError
from pydantic import create_model as make_model

from registry.choices import Choice
from registry.errors import ConfigError, Problem, problems_of
from registry.fingerprint import Module
from registry.plugins import load


def refers(what: str, *given: str) -> BeforeValidator:
    """Pydantic validator of a field that names a user function; see `resolve`."""
    return BeforeValidator(lambda value: None if value is None else resolve(what, given, value))


def resolve(what: str, given: tuple[str, ...], value: Any) -> Choice:
    """The function that a config value names, with its options checked against its signature.

    The value is `"package.module:function"`, `"file.py:function"`, a mapping of a name and options,
    or what an earlier call returned; `what` is its key, for messages, and `given` are the arguments
    that the caller passes. A ConfigError says that there is no such function, or what does not fit.
    """
    if isinstance(value, Choice):
        value = {"name": value.name, **value.options()}
    options = dict(value) if isinstance(value, Mapping) else {"name": value}
    name = options.get("name")
    if not isinstance(name, str) or not all(name.rpartition(":")[::2]):
        rule = f'{what} is named as "package.module:function"; got {name!r}'
        raise ConfigError([Problem("", rule, value)])
    model = _schema(name, given)
    try:
        return model(**options)
    except ValidationError as error:
        raise ConfigError(problems_of(error, model)) from None


def function_of(name: str) -> Callable[..., Any]:
    """The function of this name; a ConfigError where its module does not hold it."""
    _, _, attribute = name.rpartition(":")
    found = getattr(_module_of(name), attribute, None)
    if not callable(found):
        rule = f"{name.rpartition(':')[0]} holds no function {attribute!r}"
        raise ConfigError([Problem("", rule, name)])
    return found


def source_of(name: str) -> Module:
    """The module that holds the function of this name, and its file."""
    module = _module_of(name)
    return Module(module.__name__, Path(str(module.__file__)))


def _module_of(name: str) -> ModuleType:
    return sys.modules[load(name.rpartition(":")[0]).module]


@cache
def _schema(name: str, given: tuple[str, ...]) -> type[Choice]:
    function = function_of(name)
    hints = get_type_hints(function)
    fields: dict[str, Any] = {"name": (Literal[name], ...)}
    parameters = inspect.signature(function).parameters
    for option, parameter in parameters.items():
        if option in given or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[option] = (hints.get(option, Any), default)
    missing = [argument for argument in given if argument not in parameters]
    if missing and not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        rule = f"{name} takes {', '.join(given)}; it lacks {', '.join(missing)}"
        raise ConfigError([Problem("", rule, name)])
    try:
        return make_model(name, __base__=Choice, **fields)
    except PydanticUserError as error:
        rule = f"{name} has an argument that no config can hold: {error}"
        raise ConfigError([Problem("", rule, name)]) from error
