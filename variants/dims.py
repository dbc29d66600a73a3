"""The sizes that the parts of one encoder share."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dims:
    """Sizes of one encoder, handed to each of its parts.

    Args:
        d_model: Width of the residual stream.
        n_heads: Attention heads.
        d_head: Width of a head.
        n_layers: Blocks.
        bias: Whether linear maps and layer norms learn an additive bias.

    Raises:
        ValueError: If a size is not positive.
    """

    d_model: int
    n_heads: int
    d_head: int
    n_layers: int
    bias: bool = True

    def __post_init__(self) -> None:
        for size in ("d_model", "n_heads", "d_head", "n_layers"):
            if getattr(self, size) < 1:
                raise ValueError(f"{size} must be at least 1; got {size}={getattr(self, size)}")
