"""What a config builds: every part with its class, options, output shape and parameters."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sysconfig import get_path
from typing import TYPE_CHECKING, Any, cast

from registry.builder import build_encoder
from registry.choices import Choice
from registry.config import PARTS, EncoderConfig
from registry.describing import columns
from registry.measuring import by_path, counting, sample_of
from registry.shapes import Shape, tensors_of
from registry.table import INTERACTIVE, table_of
from registry.threads import threads
from registry.watching import Watch, watching

if TYPE_CHECKING:
    from torch import Tensor, nn

    from variants.encoder import Encoder
    from variants.positions import Position

SEAMS = ("place", "embed", "rotate", "bias", "scores")


@dataclass(frozen=True)
class Row:
    """One part of a built encoder.

    Args:
        path: Its place in the encoder.
        part: Its class.
        file: The file of the class.
        options: Its options, defaults filled in.
        output: Shape of its output on the sample batch; for a position, the seams it uses.
        parameters: Parameters that are its own and in no other row.
        flops: Operations that are its own and in no other row, on the sample batch.
    """

    path: str
    part: str
    file: str
    options: str
    output: str
    parameters: int
    flops: int

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        told = (self.path, self.part, self.file, self.options, self.output)
        return (*told, f"{self.parameters:,}", f"{self.flops:,}")


@dataclass(frozen=True)
class Explanation:
    """A built encoder: its size in words, its parts, and the tensors on the way through it."""

    headline: list[str]
    rows: list[Row]
    tensors: list[Shape]

    def table(self, width: int | None) -> list[str]:
        """The rows as aligned lines, and their sums; None leaves every line at its full width."""
        total = (
            sum(row.parameters for row in self.rows),
            sum(row.flops for row in self.rows),
        )
        return columns(
            [
                ("path", "class", "file", "options", "output", "parameters", "FLOPs"),
                *(row.cells for row in self.rows),
                ("total", "", "", "", "", f"{total[0]:,}", f"{total[1]:,}"),
            ],
            width,
        )


@threads()
def explain(config: EncoderConfig, length: int = 8) -> Explanation:
    """Build an encoder and run a sample batch of two sequences through it.

    Raises:
        ConfigError: If a part fails on the sample batch; the part is named.
    """
    import torch

    encoder = build_encoder(config, seed=0).eval()
    sample = sample_of(encoder, length)
    with torch.no_grad(), watching(encoder) as watch, counting() as counter:
        out = encoder(sample)
    watch.flops.update(by_path(counter))
    rows = list(_rows(encoder, config, watch))
    tensors = list(tensors_of(encoder, watch, sample, out))
    return Explanation(_headline(encoder, config, length), rows, tensors)


def _rows(encoder: "Encoder", config: EncoderConfig, watch: Watch) -> Iterator[Row]:
    named: dict[str, nn.Module] = {
        path: module for path, module in encoder.named_modules() if _is_row(path, module)
    }
    counted: set[int] = set()
    for path, module in named.items():
        own = [one for one in _own_parameters(module, path, named) if id(one) not in counted]
        counted |= {id(one) for one in own}
        output = _seams(module) or watch.shapes.get(path, "-")
        size, flops = sum(one.numel() for one in own), watch.own_flops(path, named)
        yield _row(path or "encoder", module, _options(module, config), output, size, flops)
    yield _row("mask", encoder.mask, _text(config.mask), "-", 0)
    initializer = table_of("initializer")[config.initializer.name]
    yield _row("initializer", initializer, _text(config.initializer), "-", 0)


def _is_row(path: str, module: "nn.Module") -> bool:
    """Parts and the skeleton; of torch's own modules those that nothing of ours holds."""
    ours = not type(module).__module__.startswith("torch.")
    return ours or ("." not in path and any(True for _ in module.parameters(recurse=False)))


def _own_parameters(
    module: "nn.Module", path: str, named: "dict[str, nn.Module]"
) -> "Iterator[Tensor]":
    yield from module.parameters(recurse=False)
    for name, child in module.named_children():
        inner = f"{path}.{name}" if path else name
        if inner not in named:
            yield from _own_parameters(child, inner, named)


def _row(path: str, thing: Any, options: str, output: str, parameters: int, flops: int = 0) -> Row:
    part = thing if isinstance(thing, type) else type(thing)
    return Row(path, part.__qualname__, _file(part), options, output, parameters, flops)


def _file(part: type) -> str:
    try:
        file = Path(inspect.getfile(part))
    except (OSError, TypeError):
        return INTERACTIVE
    roots = (Path.cwd(), Path(get_path("purelib")))
    near = (file.relative_to(root) for root in roots if file.is_relative_to(root))
    return str(next(near, file))


def _options(module: "nn.Module", config: EncoderConfig) -> str:
    for kind in PARTS:
        if isinstance(module, table_of(kind).contract):
            name = getattr(module, "name", None)
            return next(
                (_text(one) for one in _tree(getattr(config, kind)) if one.name == name), ""
            )
    return ""


def _tree(chosen: Choice) -> Iterator[Choice]:
    yield chosen
    for value in chosen.options().values():
        if isinstance(value, Choice):
            yield from _tree(value)


def _text(chosen: Choice) -> str:
    if not chosen.name.isidentifier():
        return chosen.name
    return ", ".join(f"{key}={value}" for key, value in chosen.options().items())


def _seams(module: "nn.Module") -> str:
    contract = table_of("position").contract
    if not isinstance(module, contract):
        return ""
    used = [s for s in SEAMS if getattr(type(module), s) is not getattr(contract, s)]
    return " ".join(used) or "nothing"


def _headline(encoder: "Encoder", config: EncoderConfig, length: int) -> list[str]:
    dims, total = encoder.dims, sum(one.numel() for one in encoder.parameters())
    d_ff = getattr(encoder.blocks[0].feedforward, "d_ff", "-")
    sizes = (
        f"{_counted(dims.n_layers, 'layer')}, {_counted(dims.n_heads, 'head')}, "
        f"d_model {dims.d_model}, d_head {dims.d_head}, d_ff {d_ff}, {total:,} parameters"
    )
    return [sizes, *_norms(encoder, length)]


def _norms(encoder: "Encoder", length: int) -> Iterator[str]:
    """Tokens against positions: the one drowns the other where the norms differ much."""
    import torch

    with torch.no_grad():
        index = torch.arange(length).expand(1, length)
        position = cast("Position", encoder.positions[0])
        added = position.embed(index)
        if encoder.embedding is not None and added is not None:
            ids = torch.arange(encoder.embedding.table.num_embeddings).expand(1, -1)
            tokens, places = encoder.embedding(ids).norm(dim=-1), added.norm(dim=-1)
            means = f"token vectors {tokens.mean():.2f}, position table {places.mean():.2f}"
            yield f"mean norm: {means}"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"
