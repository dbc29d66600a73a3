"""Learned absolute positions."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from variants.dims import Dims
from variants.positions.position import BeyondTableError, Position


class Learned(Position):
    """One learned vector per index, added to the token vectors.

    Rows that training never visits keep their initial values: results at such positions measure
    an untrained table, not the method. The initializer fills the table like token embeddings.

    Source: Gehring et al. 2017, section 3.1 (arXiv:1705.03122).

    Args:
        max_length: Rows of the table: the longest sequence.

    Raises:
        ValueError: If max_length is not positive.
        BeyondTableError: In a forward, if an index has no row.
    """

    name = "learned"
    beyond = "raises"

    def __init__(self, dims: Dims, max_length: int = 512) -> None:
        super().__init__(dims)
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1; got max_length={max_length}")
        self.max_length = max_length
        self.table = nn.Embedding(max_length, dims.d_model)

    def embed(self, index: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq d_model"]:
        self._refuse(index.shape[1])
        # Reading a value stops a whole-graph capture; there the length alone is checked.
        if not torch.compiler.is_compiling() and index.numel():
            self._refuse(int(index.max()) + 1)
        return self.table(index)

    def _refuse(self, length: int) -> None:
        if length > self.max_length:
            raise BeyondTableError(
                f"learned has one row per index up to max_length={self.max_length}; "
                f"got a sequence that reaches length {length}; "
                "raise max_length or use an encoding that extends"
            )
