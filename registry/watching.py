"""What happens in an encoder while it runs: shapes, who calls whom, and who fails."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from registry.problems import ConfigError, Problem

if TYPE_CHECKING:
    from torch import nn

    from variants.encoder import Encoder


@dataclass(frozen=True)
class Watch:
    """What is seen of each module: shapes of its output and inputs, its callers and operations."""

    shapes: dict[str, str] = field(default_factory=dict[str, str])
    calls: dict[str, list[list[str]]] = field(default_factory=dict[str, list[list[str]]])
    flops: dict[str, int] = field(default_factory=dict[str, int])
    given: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def own_flops(self, path: str, rows: Iterable[str]) -> int:
        """The operations of a row, without those of the rows that it calls."""
        total = self.flops.get(path, 0)
        for row in set(rows) - {path}:
            stacks = self.calls.get(row, [])
            mine = sum(_caller(stack, rows) == path for stack in stacks)
            total -= self.flops.get(row, 0) * mine // max(len(stacks), 1)
        return total


def _caller(stack: list[str], rows: Iterable[str]) -> str | None:
    """The innermost row that a call came from."""
    return next((path for path in reversed(stack) if path in rows), None)


@contextmanager
def watching(encoder: "Encoder") -> Generator[Watch]:
    """Note the output shape of every module; say which one fails."""
    watch = Watch()
    inside: list[str] = []
    handles: list[Any] = []
    for path, module in encoder.named_modules():

        def enter(module: "nn.Module", given: Any, path: str = path) -> None:
            watch.calls.setdefault(path, []).append(list(inside))
            inside.append(path)
            watch.given[path] = [_shape(one) for one in given]

        def leave(module: "nn.Module", given: Any, output: Any, path: str = path) -> None:
            inside.pop()
            watch.shapes[path] = _shape(output)

        handles += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
    try:
        yield watch
    except Exception as error:
        rule = f"fails on a sample batch: {type(error).__name__}: {error}"
        raise ConfigError([Problem(inside[-1] or "encoder", rule)]) from error
    finally:
        for handle in handles:
            handle.remove()


def _shape(output: Any) -> str:
    output = getattr(output, "readout", output)
    output = output[0] if isinstance(output, tuple) else output
    return "×".join(map(str, output.shape)) if hasattr(output, "shape") else "-"
