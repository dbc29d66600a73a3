"""Choices: a part named in a config, with options checked against its constructor."""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, SerializeAsAny, ValidationError
from pydantic import create_model as make_model

from registry.problems import ConfigError, Problem, mapping, problems_of
from registry.table import TABLES, UnknownNameError, table_of

GIVEN = ("self", "dims", "make_norm")
"""What the builder hands to a constructor; every other argument is an option."""


class Choice(BaseModel):
    """A part named in a config: its name and its options, defaults filled in."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str

    def options(self) -> dict[str, Any]:
        """The options, as they were checked."""
        return {key: getattr(self, key) for key in type(self).model_fields if key != "name"}

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value}" for key, value in self.options().items())
        return f"{self.name}({options})" if options else self.name


def options_of(part: type) -> Iterator[tuple[str, Any, Any]]:
    """The options of a class: name, annotation and default (`...` where there is none).

    Raises:
        TypeError: If its constructor takes `*args`, `**kwargs` or an option without annotation.
    """
    if part.__init__ is object.__init__:
        return
    hints = get_type_hints(part.__init__)
    for name, parameter in inspect.signature(part.__init__).parameters.items():
        if name in GIVEN:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"{part.__qualname__} takes {parameter}: name each option, with a type and a "
                "default, since that signature is the config schema"
            )
        if name not in hints:
            raise TypeError(f"{part.__qualname__}: the option {name!r} needs a type annotation")
        default = ... if parameter.default is parameter.empty else parameter.default
        yield name, hints[name], default


@cache
def schema(kind: str, part: type) -> type[Choice]:
    """The model of a class's options."""
    fields: dict[str, Any] = {"name": (Literal[vars(part)["name"]], ...)}
    for name, annotation, default in options_of(part):
        fields[name] = (_annotation(annotation), default)
    return make_model(f"{kind} {vars(part)['name']}", __base__=Choice, **fields)


def _annotation(annotation: Any) -> Any:
    """An option that is itself a part, such as `inner: Position`, is a choice of that kind."""
    for kind, table in TABLES.items():
        if annotation is table.contract:
            return choice(kind)
    return annotation


def choice(kind: str) -> Any:
    """The field type of a choice among the parts of a kind, looked up when it is checked."""
    return Annotated[SerializeAsAny[Choice], BeforeValidator(_resolver(kind))]


def _resolver(kind: str) -> Callable[[Any], Choice]:
    def check(value: Any) -> Choice:
        return resolve(kind, value)

    return check


def resolve(kind: str, value: Any) -> Choice:
    """The choice that a config value makes.

    Args:
        kind: The kind of part.
        value: A name, a mapping with a name and options, or a choice; for masks also an
            expression such as "causal & ~window(radius=2)".

    Raises:
        ConfigError: If the name is unknown or an option does not fit.
    """
    if isinstance(value, Choice):
        value = {"name": value.name, **value.options()}
    if isinstance(value, str):
        value = {"name": value}
    given = dict(mapping(value))
    name = given.get("name")
    if not isinstance(name, str):
        rule = f"a {kind} is a name, or a mapping with a name and options; got {value!r}"
        raise ConfigError([Problem("name" if "name" in given else "", rule, value)])
    if kind == "mask" and not name.isidentifier():
        return _expression(name)
    return _named(kind, name, given)


def _named(kind: str, name: str, given: Mapping[str, Any]) -> Choice:
    try:
        part = table_of(kind)[name]
    except UnknownNameError as error:
        nearest = error.nearest[0] if error.nearest else None
        rule = f"no {kind} is named {name!r}"
        raise ConfigError([Problem("", rule, name, tuple(error.known), nearest)]) from None
    if any(_holds_tensor(annotation) for _, annotation, _ in options_of(part)):
        rule = f"{name} is made of a tensor, so it goes to the call, not into a config"
        raise ConfigError([Problem("", rule, name)])
    model = schema(kind, part)
    try:
        return model(**given)
    except ValidationError as error:
        raise ConfigError(problems_of(error, model)) from None


def _holds_tensor(annotation: Any) -> bool:
    text = f"{getattr(annotation, '__module__', '')} {annotation!r}"
    return "Tensor" in text or any(_holds_tensor(inner) for inner in get_args(annotation))


def _expression(text: str) -> Choice:
    """The choice of a mask expression, once it has been read and built."""
    MaskExpression(text).build()
    return Choice(name=ast.unparse(ast.parse(text, mode="eval")))


class MaskExpression:
    """A mask written as an expression: names, calls with options, `&`, `|`, `~`.

    Raises:
        ConfigError: If it says anything else, or a mask in it does not fit.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.tree = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise ConfigError([self._problem(f"not an expression ({error.msg})")]) from None

    def build(self) -> Any:
        """The mask."""
        return self._build(self.tree)

    def _build(self, node: ast.expr) -> Any:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            return self._build(node.left) & self._build(node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._build(node.left) | self._build(node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return ~self._build(node.operand)
        if isinstance(node, ast.Name):
            return build_mask(resolve("mask", node.id))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
            return build_mask(resolve("mask", {"name": node.func.id, **self._options(node)}))
        raise ConfigError([self._problem(f"{ast.unparse(node)!r} is not part of a mask")])

    def _options(self, call: ast.Call) -> dict[str, Any]:
        try:
            return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        except ValueError:
            raise ConfigError(
                [self._problem(f"options are plain values: {ast.unparse(call)}")]
            ) from None

    def _problem(self, what: str) -> Problem:
        rule = (
            f"{what}; a mask expression joins names and calls with options by &, | and ~, "
            f'such as "causal & ~window(radius=2)"; got {self.text!r}'
        )
        return Problem("", rule, self.text)


def build_mask(chosen: Choice) -> Any:
    """The mask that a choice names.

    Raises:
        ConfigError: If the mask refuses its options.
    """
    if not chosen.name.isidentifier():
        return MaskExpression(chosen.name).build()
    try:
        return table_of("mask")[chosen.name](**chosen.options())
    except ValueError as error:
        raise ConfigError([Problem("", str(error), str(chosen))]) from None


def build_part(kind: str, chosen: Choice, *given: Any) -> Any:
    """The part that a choice names, handed `given` before its options.

    Raises:
        ConfigError: If the part refuses its options.
    """
    options = {
        key: build_part(_kind_of(value), value, given[0]) if isinstance(value, Choice) else value
        for key, value in chosen.options().items()
    }
    try:
        return table_of(kind)[chosen.name](*given, **options)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError([Problem("", str(error), str(chosen))]) from None


def _kind_of(chosen: Choice) -> str:
    return type(chosen).__name__.split(" ")[0]
