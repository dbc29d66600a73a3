"""What a config builds: every part with its class, options, output shape and parameters."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import inspect
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from sysconfig import get_path
from typing import TYPE_CHECKING, Any, cast

from registry.build import build_encoder, threads
from registry.choices import Choice
from registry.config import PARTS, EncoderConfig
from registry.errors import ConfigError, Problem
from registry.registry import INTERACTIVE, registry_of
from registry.summary import columns

if TYPE_CHECKING:
    from torch import Tensor, nn

    from variants.encoder import Encoder
    from variants.positions import Position


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


BATCH = 2


def sample_of(encoder: "Encoder", length: int) -> "Tensor":
    """Two random sequences for an encoder: token ids, or vectors where it has no table."""
    import torch

    generator = torch.Generator().manual_seed(0)
    if encoder.embedding is None:
        return torch.randn(BATCH, length, encoder.dims.d_model, generator=generator)
    rows = encoder.embedding.table.num_embeddings
    return torch.randint(rows, (BATCH, length), generator=generator)


def counting() -> Any:
    """torch's counter of floating-point operations, taught what attention costs on a CPU.

    It counts matrix products, two operations for each multiplication with its addition, whether or
    not a mask lets a kernel skip some.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

    _spare_the_compiler()

    def attention(q: Any, k: Any, v: Any, *more: Any, **named: Any) -> int:
        return sdpa_flop_count(q, k, v)

    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return FlopCounterMode(display=False, custom_mapping={kernel: attention})


def _spare_the_compiler() -> None:
    """Keep torch from importing its compiler, some 2 s, to shut it out of the counter.

    Nothing is compiled while we count. Where torch spells it otherwise it is slower, and no more.
    """
    from torch.utils import flop_counter

    mode = getattr(flop_counter, "_FlopCounterMode", None)
    counted = inspect.unwrap(mode.__torch_dispatch__) if mode is not None else None
    if counted is not None and "torch._dynamo" not in sys.modules:
        counted.__dict__.setdefault("__dynamo_disable", counted)


def by_path(counter: Any) -> Mapping[str, int]:
    """The operations in each module, those of the modules that it calls among them."""
    return {
        path.partition(".")[2]: sum(counts.values())
        for path, counts in counter.get_flop_counts().items()
        if path != "Global"
    }


def first_scale(encoder: "Encoder", length: int) -> float:
    """The root mean square of the states that a new encoder gives, before the final norm."""
    import torch

    seen: list[Any] = []

    def note(module: Any, given: Any, out: Any) -> None:
        seen.append(out)

    handle = encoder.blocks[-1].register_forward_hook(note)
    try:
        with torch.no_grad():
            encoder(sample_of(encoder, length))
    finally:
        handle.remove()
    return seen[-1].square().mean().sqrt().item()


Shape = tuple[str, str, str, str]
"""A tensor's name, its axes, its shape, and what is to be said of where it is held."""

EVERY = "in each layer"


def tensors_of(encoder: "Encoder", watch: Watch, sample: "Tensor", out: Any) -> Iterator[Shape]:
    """Every tensor on the way, from the tokens to the logits, as it was seen in a forward pass.

    Args:
        encoder: The encoder.
        watch: What was seen of its modules.
        sample: What went in.
        out: What came out.
    """
    axes = "batch seq d_model" if sample.ndim == 3 else "batch seq"
    yield "tokens", axes, _sizes(sample.shape), ""
    if "embedding" in watch.shapes:
        yield "token vectors", "batch seq d_model", watch.shapes["embedding"], ""
    yield from _of_positions(encoder, sample.shape[1])
    yield from _of_attention(encoder, watch)
    yield from _of_feedforward(encoder, watch)
    yield "final states", "batch seq d_model", _sizes(out.hidden.shape), ""
    axes = "batch seq d_model" if out.readout.ndim == 3 else "batch d_model"
    yield "readout", axes, _sizes(out.readout.shape), ""
    if out.logits is not None:
        yield "logits", axes.replace("d_model", "n_classes"), _sizes(out.logits.shape), ""


def _of_positions(encoder: "Encoder", length: int) -> Iterator[Shape]:
    """What the position adds to token vectors and to scores."""
    import torch

    position: Any = encoder.positions[0]
    each = EVERY if len(encoder.positions) > 1 else "once for all layers"
    with torch.no_grad():
        index = torch.arange(length).expand(1, length)
        added, bias = position.embed(index), position.bias(index, index)
    if added is not None:
        yield "added to token vectors", "batch seq d_model", _sizes(added.shape), each
    if bias is not None:
        yield "position bias", "batch heads query key", _sizes(bias.shape), each


def _of_attention(encoder: "Encoder", watch: Watch) -> Iterator[Shape]:
    projected = watch.shapes.get("blocks.0.attention.to_k", "")
    heads: Any = encoder.attention.heads
    if heads.n_kv_heads != encoder.dims.n_heads:
        shared = f"{heads.n_kv_heads} heads for {encoder.dims.n_heads} of the queries, {EVERY}"
        yield "keys, values as projected", "batch seq (kv_heads d_head)", projected, shared
    q, k, v = watch.given["attention"][:3]
    yield "queries (q)", "batch heads query d_head", q, EVERY
    yield "keys (k)", "batch heads key d_head", k, EVERY
    yield "values (v)", "batch heads key d_head", v, EVERY
    batch, n_heads, queries, _ = q.split("×")
    scores = "×".join((batch, n_heads, queries, k.split("×")[2]))
    held = EVERY if encoder.reference is encoder.attention else _elsewhere(encoder)
    yield "scores", "batch heads query key", scores, held
    yield "weights", "batch heads query key", scores, held
    yield "mixed values", "batch heads query d_head", watch.shapes["attention"], EVERY
    yield "attention's output", "batch seq d_model", watch.shapes["blocks.0.attention"], EVERY


def _elsewhere(encoder: "Encoder") -> str:
    names: Any = encoder.attention.name, encoder.reference.name
    return f"as {names[0]} works; whole by {names[1]}, where weights are asked for"


def _of_feedforward(encoder: "Encoder", watch: Watch) -> Iterator[Shape]:
    """The maps inside the feed-forward layer, and what it writes into the stream."""
    block: Any = encoder.blocks[0]
    feedforward = block.feedforward
    if feedforward is None:
        return
    path = "blocks.0.feedforward"
    for name, _ in feedforward.named_children():
        if name != "to_model" and f"{path}.{name}" in watch.shapes:
            yield f"feed-forward, {name}", "batch seq d_ff", watch.shapes[f"{path}.{name}"], EVERY
    yield "feed-forward's output", "batch seq d_model", watch.shapes[path], EVERY


def _sizes(shape: Any) -> str:
    return "×".join(map(str, shape))


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
    initializer = registry_of("initializer")[config.initializer.name]
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
        if isinstance(module, registry_of(kind).contract):
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
    contract = registry_of("position").contract
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
