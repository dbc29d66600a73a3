"""The skeleton: embed, n blocks, final norm, read out. It receives its parts already built."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float, Int, Integer
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from variants.attentions.attention import Attention
from variants.block import Block
from variants.dims import Dims
from variants.embedding import TokenEmbedding
from variants.masks.mask import Mask, Sizes
from variants.masks.padding import Padding
from variants.norms.norm import Norm
from variants.positions.position import Position, as_index
from variants.readouts.readout import Readout
from variants.shapes import Real, Scores, Stream, TokenIndex


@dataclass(frozen=True)
class EncoderOutput:
    """What an encoder returns.

    Args:
        hidden: Final token states, exactly 0 at padded positions.
        readout: What the readout makes of them: one vector a sequence, or one a token.
        logits: `readout` through one linear layer, where the encoder has classes.
        weights: Attention weights before dropout, one tensor a layer, where they were asked for.
    """

    hidden: Stream
    readout: Float[Tensor, "batch *tokens d_model"]
    logits: Float[Tensor, "batch *tokens n_classes"] | None
    weights: tuple[Scores, ...] | None


class Encoder(nn.Module):
    """A Transformer encoder made of given parts.

    `registry.build_encoder` builds one from a config.

    Args:
        dims: Sizes.
        embedding: Token vectors; None where inputs come embedded.
        positions: One position object for all layers, or one a layer.
        blocks: The layers; where they are fewer than `dims.n_layers` they are used again in turn,
            so that layers share weights (Lan et al. 2020, arXiv:1909.11942).
        final_norm: Applied to the stream that leaves the last block, or None.
        readout: What is read from the final states.
        head: From the readout to logits, or None.
        mask: Applied in every forward, together with the call's mask.
        attention: The backend.
        reference: The backend that is used when weights are asked for.
        pad_id: Token id that is padding, or None.
        dropout: Share of the embedded inputs dropped in training.
        gradient_checkpointing: Keep no activations within a block: the backward pass computes them
            again, from the same random numbers (Chen et al. 2016, arXiv:1604.06174).

    `config` is what the encoder was built from, None if it was built by hand.
    """

    config: Any = None

    def __init__(
        self,
        dims: Dims,
        embedding: TokenEmbedding | None,
        positions: list[Position],
        blocks: list[Block],
        final_norm: Norm | None,
        readout: Readout,
        head: nn.Linear | None,
        mask: Mask,
        attention: Attention,
        reference: Attention,
        pad_id: int | None = None,
        dropout: float = 0.0,
        gradient_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.gradient_checkpointing = gradient_checkpointing
        self.dims, self.mask, self.pad_id = dims, mask, pad_id
        self.embedding = embedding
        self.positions = nn.ModuleList(positions)
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = final_norm
        self.readout = readout
        self.head = head
        self.attention, self.reference = attention, reference
        self.dropout = nn.Dropout(dropout)
        self._spanning = [
            one for one in self.modules() if isinstance(one, Norm) and one.spans_tokens
        ]

    def forward(
        self,
        tokens: TokenIndex | Stream,
        mask: Mask | None = None,
        positions: Integer[Tensor, "batch_or_1 seq"] | None = None,
        need_weights: bool = False,
        generator: torch.Generator | None = None,
    ) -> EncoderOutput:
        """Encode a batch.

        Args:
            tokens: Token ids, or vectors that skip the token table and its scale.
            mask: Which keys each query may attend to, besides the encoder's own mask and, for
                token ids, the padding that `pad_id` marks.
            positions: Position indices, in place of those that the mask implies.
            need_weights: Return the attention weights.
            generator: Source of random positions; None: torch's global one in training, a fresh
                one seeded 0 in evaluation.

        Raises:
            TypeError, ValueError: If an input does not fit, naming what came.
        """
        self._check(tokens, mask, positions)
        batch, seq = tokens.shape[:2]
        mask = self._effective(tokens, mask)
        keep = mask.keep(batch, seq, tokens.device)
        if positions is None:
            positions = _ending(mask.positions(batch, seq, tokens.device), keep)
        # Padding may hold anything: nan times a weight of 0 is nan, an id may be no row.
        tokens = tokens if keep is None else _without_padding(tokens, keep)
        index = self._place(as_index(positions).to(tokens.device), generator)
        seen: list[Tensor] | None = [] if need_weights else None
        self._tell_norms(keep)
        hidden = self._run(self._embed(tokens), index, mask, seen)
        self._tell_norms(None)
        if keep is not None:
            hidden = hidden.masked_fill(~rearrange(keep, "batch seq -> batch seq 1"), 0.0)
        readout = self.readout(hidden, keep)
        logits = None if self.head is None else self.head(readout)
        return EncoderOutput(hidden, readout, logits, None if seen is None else tuple(seen))

    @property
    def draws(self) -> bool:
        """Does each forward draw the positions of its tokens at random?"""
        position: Any = self.positions[0]
        return type(position).place is not Position.place

    def _effective(self, tokens: Tensor, mask: Mask | None) -> Mask:
        effective = self.mask if mask is None else self.mask & mask
        if self.pad_id is not None and not tokens.is_floating_point():
            effective = effective & Padding.from_tokens(tokens, self.pad_id)
        return effective

    def _place(self, index: TokenIndex, generator: torch.Generator | None) -> TokenIndex:
        position: Any = self.positions[0]
        # Making a generator stops a whole-graph capture: only a position that draws gets one.
        if self.draws and generator is None and not self.training:
            generator = torch.Generator(index.device).manual_seed(0)
        return position.place(index, generator)

    def _embed(self, tokens: Tensor) -> Stream:
        if tokens.is_floating_point():
            return tokens
        assert self.embedding is not None
        try:
            return self.embedding(tokens)
        except IndexError:
            rows = self.embedding.table.num_embeddings
            raise ValueError(
                f"token ids lie in 0 … {rows - 1} (vocab_size={rows}); got ids from "
                f"{int(tokens.min())} to {int(tokens.max())}"
            ) from None

    def _run(
        self, x: Stream, index: Int[Tensor, "#batch seq"], mask: Mask, seen: list[Tensor] | None
    ) -> Stream:
        batch, seq = x.shape[:2]
        sizes = Sizes(batch, self.dims.n_heads, seq, seq)
        attention = self.attention if seen is None else self.reference
        prepared, factor = None, self.attention.length_factor(mask, sizes, x.device)
        for layer in range(self.dims.n_layers):
            if layer < len(self.positions):
                position: Any = self.positions[layer]
                x = position.join(x, index)
                prepared = attention.prepare(mask, position, index, index, sizes)
            x = self.dropout(x) if layer == 0 else x
            run = self._runner(self.blocks[layer % len(self.blocks)])
            x = run(x, position, index, attention, prepared, seen, factor)
        return x if self.final_norm is None else self.final_norm(x)

    def _tell_norms(self, keep: Tensor | None) -> None:
        for norm in self._spanning:
            norm.real = keep

    def _runner(self, block: nn.Module) -> Any:
        if self.gradient_checkpointing and torch.is_grad_enabled():
            return partial(checkpoint, block, use_reentrant=False)
        return block

    def _check(self, tokens: Tensor, mask: Mask | None, positions: Tensor | None) -> None:
        if not isinstance(tokens, Tensor):
            raise TypeError(f"tokens are a tensor; got {type(tokens).__name__}")
        if tokens.is_floating_point():
            if tokens.ndim != 3 or tokens.shape[2] != self.dims.d_model:
                raise ValueError(
                    f"embedded inputs have shape (batch, seq, d_model={self.dims.d_model}); "
                    f"got {tuple(tokens.shape)}"
                )
        elif tokens.ndim != 2 or tokens.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"tokens are int64 or int32 of shape (batch, seq); got {tokens.dtype} of shape "
                f"{tuple(tokens.shape)}"
            )
        elif self.embedding is None:
            raise ValueError("this encoder has no token table (vocab_size is null): embed first")
        if tokens.shape[1] == 0:
            raise ValueError(f"a sequence has at least 1 token; got shape {tuple(tokens.shape)}")
        if mask is not None and not isinstance(mask, Mask):
            raise TypeError(
                f"mask is a variants.masks.Mask; got {type(mask).__name__}; "
                "a boolean tensor, True = may attend, becomes one as Dense(tensor)"
            )
        if positions is not None:
            self._check_positions(positions, tokens)

    def _check_positions(self, positions: Tensor, tokens: Tensor) -> None:
        batch, seq = tokens.shape[:2]
        if positions.ndim != 2 or positions.shape[0] not in (1, batch) or positions.shape[1] != seq:
            raise ValueError(
                f"positions have shape ({batch} or 1, {seq}); got {tuple(positions.shape)}"
            )


def _without_padding(tokens: Tensor, keep: Real) -> Tensor:
    """Tokens with 0 in place of padding."""
    real = rearrange(keep, "batch seq -> batch seq 1") if tokens.is_floating_point() else keep
    return tokens.masked_fill(~real, 0)


def _ending(
    index: Int[Tensor, "batch_or_1 seq"], keep: Real | None
) -> Int[Tensor, "batch_or_1 seq"]:
    """Positions that end with the last real token: padding after it stands where it does."""
    if keep is None:
        return index
    token = torch.arange(keep.shape[1], device=index.device)
    last = torch.where(keep, token, 0).amax(dim=-1, keepdim=True)
    return index.expand(keep.shape).gather(1, torch.minimum(token, last))
