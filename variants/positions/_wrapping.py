"""What positions around another one share."""

from typing import ClassVar

import torch

from variants.dims import Dims
from variants.part import at_least, named
from variants.positions.position import BeyondTableError, Position, built, ends, reach
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex, Scores, Stream, TokenIndex


class Wrapping(Position):
    """A position that places tokens, and leaves all else to an inner encoding.

    Args:
        inner: The encoding.
        max_length: Tokens are placed below this index.

    Raises:
        ValueError: If max_length is not positive or more than the inner encoding was built for, or
            the inner encoding places tokens itself.
        TypeError: If inner is not a built position.
    """

    beyond = "raises"

    def __init__(self, dims: Dims, inner: Position, max_length: int) -> None:
        super().__init__(dims)
        if type(built(inner)).place is not Position.place:
            raise ValueError(f"{self.name} cannot wrap {inner.name}, which places tokens itself")
        self.inner, self.max_length = inner, at_least(1, "max_length", max_length)
        if inner.longest is not None and inner.longest < max_length:
            raise ValueError(
                f"{self.name} places tokens below max_length={max_length}, but its inner "
                f"{inner.name} has max_length={inner.longest}; make them the same"
            )
        self.sees_order, self.causal_only = inner.sees_order, inner.causal_only

    def refuse_beyond(self, index: TokenIndex) -> None:
        """Refuse sequences that do not fit below max_length.

        Raises:
            BeyondTableError: If there is one.
        """
        reached = reach(index)
        if reached > self.max_length:
            raise BeyondTableError(
                f"{self.name} places tokens below max_length={self.max_length}; "
                f"got a sequence that reaches length {reached}; raise max_length"
            )

    def embed(self, index: TokenIndex) -> Stream | None:
        return self.inner.embed(index)

    def rotate(
        self, q: Queries, k: Keys, q_index: QueryIndex, k_index: KeyIndex
    ) -> tuple[Queries, Keys]:
        return self.inner.rotate(q, k, q_index, k_index)

    def bias(self, q_index: QueryIndex, k_index: KeyIndex) -> Scores | None:
        return self.inner.bias(q_index, k_index)

    def scores(self, q: Queries, k: Keys, q_index: QueryIndex, k_index: KeyIndex) -> Scores | None:
        return self.inner.scores(q, k, q_index, k_index)


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

    def __init__(
        self, dims: Dims, inner: Position = named("sinusoidal"), max_length: int = 2048
    ) -> None:
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
