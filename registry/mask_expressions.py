"""Masks written as expressions, such as "causal & ~window(radius=2)"."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from registry.errors import ConfigError, Problem
from registry.options import options_of
from registry.registry import registry_of


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
    """A call as it should be written, with a name for each of its values."""
    options = [name for name, _, _ in options_of(registry_of("mask")[mask])]
    values = [ast.unparse(value) for value in call.args]
    named = [f"{option}={value}" for option, value in zip(options, values, strict=False)]
    return f"{mask}({', '.join([*named, *map(ast.unparse, call.keywords)])})"
