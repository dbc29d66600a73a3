"""What positions around another one share."""

from variants.dims import Dims
from variants.positions.position import BeyondTableError, Position, reach
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
        if not isinstance(inner, Position):
            raise TypeError(
                f"inner is a position that has been built; got {inner!r} "
                "(registry.build_encoder builds one from its name)"
            )
        if type(inner).place is not Position.place:
            raise ValueError(f"{self.name} cannot wrap {inner.name}, which places tokens itself")
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1; got max_length={max_length}")
        if inner.longest is not None and inner.longest < max_length:
            raise ValueError(
                f"{self.name} places tokens below max_length={max_length}, but its inner "
                f"{inner.name} has max_length={inner.longest}; make them the same"
            )
        self.inner, self.max_length = inner, max_length
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
