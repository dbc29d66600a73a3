"""Build encoders from configs."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import hashlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from registry.choices import build_mask, build_part, own_numbers
from registry.config import EncoderConfig, encoder_config
from registry.registry import norm_placements

if TYPE_CHECKING:
    from torch import nn

    from variants.attentions.attention import Heads
    from variants.block import Block
    from variants.dims import Dims
    from variants.encoder import Encoder
    from variants.norm_placements import NormPlacement


def build_encoder(
    config: "EncoderConfig | Mapping[str, Any] | str | Path",
    *,
    seed: int | None = None,
    **overrides: Any,
) -> "Encoder":
    """Build the encoder of a config.

    Every initial weight is a function of the seed and of the path of its parameter alone, so two
    encoders of one seed share the weights of whatever they have in common.

    Args:
        config: The name of a preset, a config, a mapping, or the path of a YAML file.
        seed: Seed of the initial weights; None draws one from torch's global generator.
        overrides: Keys that replace those of the config.

    Raises:
        ConfigError: If the config breaks a rule; it holds every problem.
        UnknownNameError: If a word is neither the name of a preset nor a file.
    """
    import torch

    checked = encoder_config(config, **overrides)
    if seed is None:
        seed = int(torch.randint(2**62, ()))
    with own_numbers():
        encoder = _Builder(checked, seed).encoder()
    encoder.config = checked
    return encoder


def seed_of(*purpose: object) -> int:
    """A seed that depends on every word of its purpose, and on nothing else."""
    text = "/".join(map(str, purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


class _Builder:
    def __init__(self, config: EncoderConfig, seed: int) -> None:
        self.config, self.seed = config, seed
        self.dims: Dims = config.dims

    def encoder(self) -> "Encoder":
        from variants.encoder import Encoder

        config, dims = self.config, self.dims
        attention = self.part("attention", "attention")
        count = 1 if config.share_layers else dims.n_layers
        encoder = Encoder(
            dims,
            embedding=self.embedding(),
            positions=self.positions(),
            blocks=[self.block(f"blocks.{layer}", attention.heads) for layer in range(count)],
            final_norm=self.part("norm", "final_norm") if self.placement_class.final_norm else None,
            readout=self.part("readout", "readout"),
            head=self.head(),
            mask=self.mask(),
            attention=attention,
            reference=self.reference(attention),
            pad_id=config.pad_id,
            dropout=config.dropout.embedding,
            gradient_checkpointing=config.gradient_checkpointing,
        )
        self.initialize(encoder)
        return encoder

    def part(self, kind: str, path: str, *given: Any) -> Any:
        """A part, whose constructor may draw random numbers that depend on its path alone."""
        import torch

        # Not torch.manual_seed: it would also seed the generators of accelerators, for good.
        torch.default_generator.manual_seed(seed_of(self.seed, "init", path))
        return build_part(kind, getattr(self.config, kind), self.dims, *given)

    def embedding(self) -> Any:
        from variants.embedding import TokenEmbedding

        config = self.config
        if config.vocab_size is None:
            return None
        return TokenEmbedding(config.vocab_size, self.dims, config.pad_id, config.embedding_scale)

    def positions(self) -> list[Any]:
        count = self.dims.n_layers if self.config.position_per_layer else 1
        return [self.part("position", f"positions.{layer}") for layer in range(count)]

    def block(self, path: str, heads: "Heads") -> "Block":
        from variants.block import Block
        from variants.multihead import MultiHeadAttention

        dropout = self.config.dropout
        feedforward = self.part("feedforward", f"{path}.feedforward")
        feedforward = None if feedforward.absent else feedforward
        # As many placements as it takes to join the sublayers of a block.
        sublayers = range(0, 1 if feedforward is None else 2, self.placement_class.sublayers)
        joins = [self.placement(f"{path}.joins.{number}") for number in range(len(sublayers))]
        attention = MultiHeadAttention(self.dims, dropout.weights, heads)
        return Block(attention, feedforward, joins, dropout.sublayer)

    def placement(self, path: str) -> "NormPlacement":
        return self.part("norm_placement", path, lambda: self.part("norm", f"{path}.norm"))

    @property
    def placement_class(self) -> "type[NormPlacement]":
        return norm_placements[self.config.norm_placement.name]

    def head(self) -> "nn.Linear | None":
        from torch import nn

        if self.config.n_classes is None:
            return None
        return nn.Linear(self.dims.d_model, self.config.n_classes, bias=self.dims.bias)

    def mask(self) -> Any:
        from variants.masks import Causal, Full

        mask = build_mask(self.config.mask)
        # Backends recognize these two by their class.
        return next((simple for simple in (Full(), Causal()) if mask == simple), mask)

    def reference(self, attention: Any) -> Any:
        from variants.attentions import Attention, Explicit

        shows = type(attention).with_weights is not Attention.with_weights
        return attention if shows else Explicit(self.dims)

    def initialize(self, encoder: "Encoder") -> None:
        """Fill linear maps and tables, each from a generator of its own path."""
        import torch
        from torch import nn

        from variants.norm_placements import NormPlacement

        initializer = self.part("initializer", "initializer")
        placement = next(one for one in encoder.modules() if isinstance(one, NormPlacement))

        def generator(path: str) -> torch.Generator:
            return torch.Generator().manual_seed(seed_of(self.seed, "init", path))

        def fill(path: str, module: nn.Module) -> None:
            if isinstance(module, nn.Embedding):
                initializer.table(module.weight, generator(f"{path}.weight"))
            elif isinstance(module, nn.Linear):
                initializer.matrix(module.weight, generator(f"{path}.weight"))
                outer = 1.0 if initializer.depth_scaled else placement.gain(path)
                module.weight *= initializer.gain(path) * outer
                if module.bias is not None:  # pyright: ignore[reportUnnecessaryComparison]
                    initializer.bias(module.bias, module.in_features, generator(f"{path}.bias"))

        modules = dict(encoder.named_modules())
        own = [path for path, one in modules.items() if getattr(one, "initializes_itself", False)]
        with torch.no_grad():
            for path, module in modules.items():
                if not any(f"{path}.".startswith(f"{mine}.") for mine in own):
                    fill(path, module)
        if encoder.embedding is not None:
            encoder.embedding.clear_pad()


@contextmanager
def threads(count: int = 1) -> Generator[None]:
    """Compute with so many threads; around a block, or as a decorator of a function.

    Numbers depend on it, and small tensors gain nothing from more than one: where other processes
    want the cores too, threads that wait for each other take many times as long.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
