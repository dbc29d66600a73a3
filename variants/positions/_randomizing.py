"""Random positions: what `randomized` and its ready names share."""

from typing import ClassVar

import torch

from variants.dims import Dims
from variants.positions._wrapping import Wrapping
from variants.positions.position import Position, ends
from variants.shapes import TokenIndex


class Randomizing(Wrapping):
    """Places tokens at sorted distinct indices, drawn from a range wider than any sequence.

    A forward draws one random order of 0 … max_length - 1. A sequence of n tokens takes the first
    n numbers of that order and stands at them in ascending order: a uniformly random set of n
    positions. So all sequences of a length stand at the same positions, and a sequence stands
    there alone as in any batch, padded left or right, or packed with others.

    Raises:
        ValueError: As `Wrapping` says; or if a ready name is given another inner encoding.
        BeyondTableError: In a forward, if a sequence is longer than max_length.
    """

    around: ClassVar[str | None] = None
    """The inner encoding that a ready name stands for; None: any."""

    def __init__(self, dims: Dims, inner: Position, max_length: int) -> None:
        super().__init__(dims, inner, max_length)
        if self.around not in (None, inner.name):
            raise ValueError(
                f"{self.name} goes around {self.around}; got inner={inner.name}; "
                "randomized goes around any"
            )
        # The draws are spaced unevenly, so whatever sees order sees direction, and places differ.
        self.sees_direction = inner.sees_order

    def place(self, index: TokenIndex, generator: torch.Generator | None) -> TokenIndex:
        self.refuse_beyond(index)
        device = index.device if generator is None else generator.device
        order = torch.randperm(self.max_length, generator=generator, device=device)
        drawn = order.to(index.device)[index]
        # Sorting by (sequence, draw) sorts each sequence by itself, all at once.
        above = ends(index) * self.max_length
        return (drawn + above).sort(dim=-1).values - above
