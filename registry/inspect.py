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
from typing import TYPE_CHECKING, Any

from registry.build import build_encoder, threads
from registry.choices import Choice
from registry.config import PARTS, EncoderConfig
from registry.errors import ConfigError, Problem
from registry.registry import Origin, registry_of
from registry.summary import columns

if TYPE_CHECKING:
    from torch import Tensor, nn

    from variants.encoder import Encoder

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
    """torch's counter of floating-point operations, which here knows attention on a CPU as well.

    It counts matrix products, two operations for each multiplication with its addition, whether or
    not a mask lets a kernel skip some.
    """
    import torch
    from torch.utils import flop_counter

    # torch imports its compiler, some 2 s, to shut it out of the counter; nothing is compiled
    # while we count. Where torch spells it otherwise it is slower, and no more.
    mode = getattr(flop_counter, "_FlopCounterMode", None)
    counted = inspect.unwrap(mode.__torch_dispatch__) if mode is not None else None
    if counted is not None and "torch._dynamo" not in sys.modules:
        counted.__dict__.setdefault("__dynamo_disable", counted)

    def attention(q: Any, k: Any, v: Any, *more: Any, **named: Any) -> int:
        return flop_counter.sdpa_flop_count(q, k, v)

    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return flop_counter.FlopCounterMode(display=False, custom_mapping={kernel: attention})


def by_path(counter: Any) -> Mapping[str, int]:
    """The operations in each module, those of the modules that it calls among them."""
    return {
        path.partition(".")[2]: sum(counts.values())
        for path, counts in counter.get_flop_counts().items()
        if path != "Global"
    }


@dataclass(frozen=True)
class Watch:
    """The shapes of each module's inputs and output, and its callers, by its path."""

    inputs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    calls: dict[str, list[list[str]]] = field(default_factory=dict[str, list[list[str]]])

    def own(self, path: str, rows: Iterable[str], flops: Mapping[str, int]) -> int:
        """The operations of a row, without those of the rows that it calls."""
        total = flops.get(path, 0)
        for row in set(rows) - {path}:
            stacks = self.calls.get(row, [])
            callers = [
                next((one for one in reversed(stack) if one in rows), None) for stack in stacks
            ]
            total -= flops.get(row, 0) * callers.count(path) // max(len(stacks), 1)
        return total


@contextmanager
def watching(encoder: "Encoder") -> Generator[Watch]:
    """Watch every module of an encoder; an error names the one that fails.

    Raises:
        ConfigError: If the block raises anything.
    """
    watch = Watch()
    inside: list[str] = []
    handles: list[Any] = []
    for path, module in encoder.named_modules():

        def enter(module: "nn.Module", given: Any, path: str = path) -> None:
            watch.calls.setdefault(path, []).append(list(inside))
            inside.append(path)
            watch.inputs[path] = [_shape(value) for value in given]

        def leave(module: "nn.Module", given: Any, output: Any, path: str = path) -> None:
            inside.pop()
            watch.outputs[path] = _shape(output)

        handles += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
    try:
        yield watch
    except Exception as error:
        rule = f"fails on a sample batch: {type(error).__name__}: {error}"
        raise ConfigError([Problem(inside[-1] or "encoder", rule)]) from error
    finally:
        for handle in handles:
            handle.remove()


def _shape(value: Any) -> str:
    value = getattr(value, "readout", value)
    value = value[0] if isinstance(value, tuple) else value
    return "×".join(map(str, value.shape)) if hasattr(value, "shape") else "-"


Shape = tuple[str, str, str, str]
"""A tensor's name, its axes, its shape, and where it is held."""

EVERY = "in each layer"


def tensors_of(encoder: "Encoder", watch: Watch, sample: "Tensor", out: Any) -> Iterator[Shape]:
    """Every tensor on the way of a sample, from the tokens to the logits, as it was watched."""
    stream = "batch seq d_model"
    yield "tokens", stream if sample.ndim == 3 else "batch seq", _shape(sample), ""
    if "embedding" in watch.outputs:
        yield "token vectors", stream, watch.outputs["embedding"], ""
    added, bias = _of_position(encoder, sample.shape[1])
    each = EVERY if len(encoder.positions) > 1 else "once for all layers"
    if added is not None:
        yield "added to token vectors", stream, _shape(added), each
    if bias is not None:
        yield "position bias", "batch heads query key", _shape(bias), each
    yield from _of_attention(encoder, watch)
    block, path = encoder.blocks[0], "blocks.0.feedforward"
    if path in watch.outputs:
        for name, _ in block.get_submodule("feedforward").named_children():
            inner = watch.outputs.get(f"{path}.{name}")
            if name != "to_model" and inner is not None:
                yield f"feed-forward, {name}", "batch seq d_ff", inner, EVERY
        yield "feed-forward's output", stream, watch.outputs[path], EVERY
    yield "final states", stream, _shape(out.hidden), ""
    axes = stream if out.readout.ndim == 3 else "batch d_model"
    yield "readout", axes, _shape(out.readout), ""
    if out.logits is not None:
        yield "logits", axes.replace("d_model", "n_classes"), _shape(out.logits), ""


def _of_position(encoder: "Encoder", length: int) -> "tuple[Tensor | None, Tensor | None]":
    import torch

    position: Any = encoder.positions[0]
    with torch.no_grad():
        index = torch.arange(length).expand(1, length)
        return position.embed(index), position.bias(index, index)


def _of_attention(encoder: "Encoder", watch: Watch) -> Iterator[Shape]:
    heads, n_heads = encoder.attention.heads, encoder.dims.n_heads
    if heads.n_kv_heads != n_heads:
        projected = watch.outputs.get("blocks.0.attention.to_k", "")
        shared = f"{heads.n_kv_heads} heads for {n_heads} of the queries, {EVERY}"
        yield "keys, values as projected", "batch seq (kv_heads d_head)", projected, shared
    q, k, v = watch.inputs["attention"][:3]
    yield "queries (q)", "batch heads query d_head", q, EVERY
    yield "keys (k)", "batch heads key d_head", k, EVERY
    yield "values (v)", "batch heads key d_head", v, EVERY
    scores = "×".join([*q.split("×")[:3], k.split("×")[2]])
    backend, reference = encoder.attention, encoder.reference
    held = f"as {backend.name} works; whole by {reference.name}, where weights are asked for"
    held = EVERY if reference is backend else held
    yield "scores", "batch heads query key", scores, held
    yield "weights", "batch heads query key", scores, held
    yield "mixed values", "batch heads query d_head", watch.outputs["attention"], EVERY
    yield "attention's output", "batch seq d_model", watch.outputs["blocks.0.attention"], EVERY


@dataclass(frozen=True)
class Row:
    """One part of a built encoder.

    Args:
        path: Its place in the encoder.
        part: Its class.
        options: Its options, defaults filled in.
        output: Shape of its output on the sample batch; for a position, the seams it uses.
        parameters: Parameters that are its own and in no other row.
        flops: Operations that are its own and in no other row, on the sample batch.
    """

    path: str
    part: type
    options: str
    output: str = "-"
    parameters: int = 0
    flops: int = 0

    @property
    def file(self) -> str:
        """The file of the class, from the present folder or from that of installed packages."""
        file = Path(Origin.of(self.part).file)
        roots = [Path.cwd(), Path(get_path("purelib"))]
        return str(next((file.relative_to(r) for r in roots if file.is_relative_to(r)), file))

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        words = (self.path, self.part.__qualname__, self.file, self.options, self.output)
        return (*words, f"{self.parameters:,}", f"{self.flops:,}")


@dataclass(frozen=True)
class Explanation:
    """A built encoder: its size in words, its parts, and the tensors on the way through it."""

    headline: list[str]
    rows: list[Row]
    tensors: list[Shape]

    def table(self, width: int | None) -> list[str]:
        """The rows as aligned lines, and their sums; None leaves every line at its full width."""
        parameters = sum(row.parameters for row in self.rows)
        flops = sum(row.flops for row in self.rows)
        head = ("path", "class", "file", "options", "output", "parameters", "FLOPs")
        total = ("total", "", "", "", "", f"{parameters:,}", f"{flops:,}")
        return columns([head, *(row.cells for row in self.rows), total], width)


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
    rows = list(_rows(encoder, config, watch, by_path(counter)))
    tensors = list(tensors_of(encoder, watch, sample, out))
    return Explanation(list(_headline(encoder, length)), rows, tensors)


def _rows(
    encoder: "Encoder", config: EncoderConfig, watch: Watch, flops: Mapping[str, int]
) -> Iterator[Row]:
    named: dict[str, nn.Module] = {
        path: module for path, module in encoder.named_modules() if _is_row(path, module)
    }
    counted: set[int] = set()
    for path, module in named.items():
        own = [one for one in _own_parameters(module, path, named) if id(one) not in counted]
        counted |= {id(one) for one in own}
        output = _seams(module) or watch.outputs.get(path, "-")
        size, operations = sum(one.numel() for one in own), watch.own(path, named, flops)
        options = _options(module, config)
        yield Row(path or "encoder", type(module), options, output, size, operations)
    yield Row("mask", type(encoder.mask), _text(config.mask))
    initializer = registry_of("initializer")[config.initializer.name]
    yield Row("initializer", initializer, _text(config.initializer))


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


def _options(module: "nn.Module", config: EncoderConfig) -> str:
    """The options of a part, which the config may name inside of another one of its kind."""
    for kind in PARTS:
        if isinstance(module, registry_of(kind).contract):
            choices: list[Choice] = [getattr(config, kind)]
            for choice in choices:  # grows while it is read
                if choice.name == getattr(module, "name", None):
                    return _text(choice)
                choices += [one for one in choice.options().values() if isinstance(one, Choice)]
    return ""


def _text(choice: Choice) -> str:
    if not choice.name.isidentifier():
        return choice.name
    return ", ".join(f"{key}={value}" for key, value in choice.options().items())


def _seams(module: "nn.Module") -> str:
    contract = registry_of("position").contract
    if not isinstance(module, contract):
        return ""
    seams = ("place", "embed", "rotate", "bias", "scores")
    used = [s for s in seams if getattr(type(module), s) is not getattr(contract, s)]
    return " ".join(used) or "nothing"


def _headline(encoder: "Encoder", length: int) -> Iterator[str]:
    """Sizes; then tokens against positions: the one drowns the other where norms differ much."""
    import torch

    dims, total = encoder.dims, sum(one.numel() for one in encoder.parameters())
    d_ff = getattr(encoder.blocks[0].feedforward, "d_ff", "-")
    layers, heads = (
        f"{number} {thing}{'s' * (number != 1)}"
        for number, thing in ((dims.n_layers, "layer"), (dims.n_heads, "head"))
    )
    yield (
        f"{layers}, {heads}, d_model {dims.d_model}, d_head {dims.d_head}, d_ff {d_ff}, "
        f"{total:,} parameters"
    )
    added, _ = _of_position(encoder, length)
    if encoder.embedding is not None and added is not None:
        with torch.no_grad():
            ids = torch.arange(encoder.embedding.table.num_embeddings).expand(1, -1)
            tokens, places = encoder.embedding(ids).norm(dim=-1), added.norm(dim=-1)
        means = f"token vectors {tokens.mean():.2f}, position table {places.mean():.2f}"
        yield f"mean norm: {means}"
