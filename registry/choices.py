"""Choices: a part named in a config, with options checked against its constructor.

Masks are also written as expressions, such as "causal & ~window(radius=2)".
"""

import ast
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from inspect import formatannotation
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PydanticUserError,
    SerializeAsAny,
    ValidationError,
    WrapValidator,
)
from pydantic import create_model as make_model

from registry.errors import (
    ConfigError,
    Problem,
    UnknownNameError,
    mapping,
    problems_of,
    unknown_key,
)
from registry.registry import REGISTRIES, needs_tensor, options_of, registry_of


class MaskExpression:
    """A mask written as an expression: names, calls with options, `&`, `|`, `~`.

    Raises:
        ConfigError: If it says anything else.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise self._refusal(f"not an expression ({error.msg})") from None

    @property
    def spelling(self) -> str:
        """The expression as it is always written: spaces and brackets of no meaning are gone."""
        return ast.unparse(self.tree)

    def single(self) -> dict[str, Any] | None:
        """Name and options, where the expression is one mask and joins nothing."""
        if isinstance(self.tree, ast.Name | ast.Call):
            return self._single(self.tree)
        return None

    def names(self) -> list[str]:
        """The masks that it joins, each once."""
        nodes = [node.func if isinstance(node, ast.Call) else node for node in ast.walk(self.tree)]
        return sorted({node.id for node in nodes if isinstance(node, ast.Name)})

    def alternatives(self) -> list[str]:
        """What the outermost `|` joins, spelled out."""
        return [ast.unparse(node) for node in _alternatives(self.tree)]

    def build(self, make: Callable[[dict[str, Any]], Any]) -> Any:
        """The mask, where `make` makes a single one of its name and options."""

        def built(node: ast.expr) -> Any:
            match node:
                case ast.BinOp(left, ast.BitAnd(), right):
                    return built(left) & built(right)
                case ast.BinOp(left, ast.BitOr(), right):
                    return built(left) | built(right)
                case ast.UnaryOp(ast.Invert(), operand):
                    return ~built(operand)
                case _:
                    return make(self._single(node))

        return built(self.tree)

    def _single(self, node: ast.expr) -> dict[str, Any]:
        match node:
            case ast.Name(name):
                return {"name": name}
            case ast.Call(ast.Name(name)):
                return {"name": name, **self._options(name, node)}
            case _:
                raise self._refusal(f"{ast.unparse(node)!r} is not part of a mask")

    def _options(self, mask: str, call: ast.Call) -> dict[str, Any]:
        if call.args and mask in registry_of("mask"):
            raise self._refusal(f"options are said by name: {_by_name(mask, call)}")
        names = [word.arg or "**" for word in call.keywords]
        if len({*names, "name", "**"}) < len(names) + 2:
            raise self._refusal(f"each option is said once: {ast.unparse(call)}")
        try:
            return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        except (ValueError, TypeError):
            raise self._refusal(f"options are plain values: {ast.unparse(call)}") from None

    def _refusal(self, what: str) -> ConfigError:
        rule = (
            f"{what}; a mask expression joins names and calls with options by &, | and ~ (never "
            f'by words or by &&), such as "causal & ~window(radius=2)"; got {self.text!r}'
        )
        return ConfigError([Problem("", rule, self.text)])


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            yield from _alternatives(left)
            yield from _alternatives(right)
        case _:
            yield node


def _by_name(mask: str, call: ast.Call) -> str:
    options = [name for name, _, _ in options_of(registry_of("mask")[mask])]
    values = [ast.unparse(value) for value in call.args]
    named = [f"{option}={value}" for option, value in zip(options, values, strict=False)]
    return f"{mask}({', '.join([*named, *map(ast.unparse, call.keywords)])})"


STRICT = ConfigDict(
    frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=True
)


class Choice(BaseModel):
    """A part named in a config: its name and its options, defaults filled in."""

    model_config = STRICT

    name: str

    def options(self) -> dict[str, Any]:
        """The options, as they were checked."""
        return {key: getattr(self, key) for key in type(self).model_fields if key != "name"}

    def __reduce__(self) -> tuple[Any, ...]:
        # The classes of choices are made when they are needed, so they have no place to be found.
        kind = _kind_of(self) if type(self) is not Choice else "mask"
        return resolve, (kind, {"name": self.name, **self.options()})

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value}" for key, value in self.options().items())
        return f"{self.name}({options})" if options else self.name


@cache
def schema(kind: str, part: type) -> type[Choice]:
    """The model of a class's options."""
    fields: dict[str, Any] = {"name": (Literal[vars(part)["name"]], ...)}
    for name, annotation, default in options_of(part):
        fields[name] = (_annotation(annotation), default)
    try:
        return make_model(f"{kind} {vars(part)['name']}", __base__=Choice, **fields)
    except PydanticUserError as error:
        rule = f"{part.__qualname__} has an option that no config can hold: {error}"
        raise ConfigError([Problem("", rule)]) from error


def _annotation(annotation: Any) -> Any:
    """An option that is itself a part, such as `inner: Position`, is a choice of that kind."""
    for kind, table in REGISTRIES.items():
        if annotation is table.contract:
            return Annotated[SerializeAsAny[Choice], among(kind)]
    arms = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ()
    if any(get_origin(one) is tuple for one in (annotation, *arms)):
        annotation = Annotated[annotation, BeforeValidator(_from_list)]
    if len(arms) > 2:
        return Annotated[annotation, WrapValidator(partial(_any_of, arms))]
    return annotation


def _from_list(value: Any) -> Any:
    """YAML and JSON have lists alone."""
    return tuple(cast(list[Any], value)) if isinstance(value, list) else value


def _any_of(arms: tuple[Any, ...], value: Any, check: Callable[[Any], Any]) -> Any:
    """One sentence where pydantic would tell what each type of a union has against the value."""
    try:
        return check(value)
    except ValidationError:
        types = " or ".join(map(formatannotation, arms))
        raise ValueError(f"input should be {types}; got {value!r}") from None


def among(kind: str) -> BeforeValidator:
    """Makes a field a choice among the parts of a kind, looked up when it is checked."""
    return BeforeValidator(partial(resolve, kind))


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
    given = dict(mapping(value)) if isinstance(value, Mapping) else {}
    name = given.get("name")
    if not isinstance(name, str):
        rule = f"a {kind} is a name, or a mapping with a name and options; got {value!r}"
        raise ConfigError([Problem("name" if "name" in given else "", rule, value)])
    if kind != "mask" or name.isidentifier():
        return _named(kind, name, given)
    extra = [unknown_key(key, given[key], ["name"]) for key in given if key != "name"]
    if extra:
        raise ConfigError(extra)
    expression = MaskExpression(name)
    single = expression.single()
    if single is not None:  # a lone mask is that mask
        return resolve("mask", single)
    _build(expression)
    return Choice(name=expression.spelling)


def _named(kind: str, name: str, given: Mapping[str, Any]) -> Choice:
    try:
        part = registry_of(kind)[name]
    except UnknownNameError as error:
        raise ConfigError([error.problem()]) from None
    if needs_tensor(part):
        rule = f"{name} is made of a tensor, so it goes to the call, not into a config"
        raise ConfigError([Problem("", rule, name)])
    model = schema(kind, part)
    try:
        return model(**given)
    except ValidationError as error:
        raise ConfigError(problems_of(error, model)) from None


def _build(expression: MaskExpression) -> Any:
    return expression.build(lambda single: build_mask(resolve("mask", single)))


def build_mask(chosen: Choice) -> Any:
    """The mask that a choice names.

    Raises:
        ConfigError: If the mask refuses its options.
    """
    if not chosen.name.isidentifier():
        return _build(MaskExpression(chosen.name))
    with _refusals(chosen):
        return registry_of("mask")[chosen.name](**chosen.options())


def build_part(kind: str, chosen: Choice, *given: Any) -> Any:
    """The part that a choice names, handed `given` before its options.

    Raises:
        ConfigError: If the part refuses its options.
    """
    from torch import nn

    options = {
        key: build_part(_kind_of(value), value, given[0]) if isinstance(value, Choice) else value
        for key, value in chosen.options().items()
    }
    with _refusals(chosen):
        part = registry_of(kind)[chosen.name](*given, **options)
        if isinstance(part, nn.Module) and "_modules" not in vars(part):
            own = type(part).__qualname__
            raise TypeError(f"{own}.__init__ must call super().__init__ first")
        return part


@contextmanager
def _refusals(chosen: Choice) -> Generator[None]:
    """A part says what it refuses by a ValueError; anything else is a fault of the part."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:
        fault = f"{chosen.name} fails: {type(error).__name__}: "
        rule = f"{'' if isinstance(error, ValueError) else fault}{error}"
        raise ConfigError([Problem("", rule, str(chosen), cause=error)]) from error


def _kind_of(chosen: Choice) -> str:
    return type(chosen).__name__.split(" ")[0]


@contextmanager
def own_numbers(seed: int | None = None) -> Generator[None]:
    """Leave no trace in torch's generator for the CPU, which may begin at a seed."""
    import torch

    with torch.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
        if seed is not None:
            torch.default_generator.manual_seed(seed)
        yield
