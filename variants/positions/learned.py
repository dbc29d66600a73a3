from typing import Literal

import torch
from einops import einsum
from torch import nn

from variants.dims import Dims
from variants.part import at_least
from variants.positions.position import Beyond, BeyondTableError, Position, lengths, reach
from variants.shapes import Stream, TokenIndex

POLICIES: dict[str, Beyond] = {"raise": "raises", "clamp": "clamps", "resample": "resamples"}


class Learned(Position):
    """One learned vector per index, added to the token vectors.

    Rows that training never visits keep their initial values: results at such positions measure
    an untrained table, not the method. The initializer fills the table like token embeddings.

    Source: Gehring et al. 2017, section 3.1 (arXiv:1705.03122); resample: Dosovitskiy et al. 2020,
    section 3.2 (arXiv:2010.11929), in one dimension.

    Args:
        max_length: Rows of the table: the longest sequence.
        beyond: What happens to longer sequences. "raise" refuses them; "clamp" gives the last row
            to every token beyond it; "resample" stretches the table over the whole sequence: of n
            tokens, token t gets the row t (max_length - 1) / (n - 1), interpolated linearly.

    Raises:
        ValueError: If max_length is not positive.
        BeyondTableError: In a forward, if an index has no row and `beyond` is "raise".
    """

    name = "learned"
    beyond = "raises"

    def __init__(
        self,
        dims: Dims,
        max_length: int = 512,
        beyond: Literal["raise", "clamp", "resample"] = "raise",
    ) -> None:
        super().__init__(dims)
        self.max_length = self.longest = at_least(1, "max_length", max_length)
        self.beyond = POLICIES[beyond]
        self.table = nn.Embedding(max_length, dims.d_model)

    def embed(self, index: TokenIndex) -> Stream:
        if self.beyond == "resamples":
            return self._resampled(index)
        if self.beyond == "clamps":
            return self.table(index.clamp(max=self.max_length - 1))
        reached = reach(index)
        if reached > self.max_length:
            raise BeyondTableError(
                f"learned has one row per index up to max_length={self.max_length}; "
                f"got a sequence that reaches length {reached}; raise max_length, set "
                "beyond=clamp or beyond=resample, or use an encoding that extends"
            )
        return self.table(index)

    def _resampled(self, index: TokenIndex) -> Stream:
        last = self.max_length - 1
        length = lengths(index)
        stretched = index.double() * last / (length - 1).clamp(min=1)
        row = torch.where(length > self.max_length, stretched, index.double())
        low = row.floor().long()
        share = (row - low).to(self.table.weight.dtype)
        rows, upper = self.table(low), self.table((low + 1).clamp(max=last))
        return rows + einsum(share, upper - rows, "batch seq, batch seq width -> batch seq width")
