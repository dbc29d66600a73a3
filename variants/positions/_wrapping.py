"""What positions around another one share."""

from jaxtyping import Float, Int
from torch import Tensor

from variants.dims import Dims
from variants.positions.position import BeyondTableError, Position, reach


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

    def refuse_beyond(self, index: Int[Tensor, "batch seq"]) -> None:
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

    def embed(self, index: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq d_model"] | None:
        return self.inner.embed(index)

    def rotate(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
        q_index: Int[Tensor, "#batch query"],
        k_index: Int[Tensor, "#batch key"],
    ) -> tuple[Float[Tensor, "batch heads query d_head"], Float[Tensor, "batch heads key d_head"]]:
        return self.inner.rotate(q, k, q_index, k_index)

    def bias(
        self, q_index: Int[Tensor, "#batch query"], k_index: Int[Tensor, "#batch key"]
    ) -> Float[Tensor, "batch heads query key"] | None:
        return self.inner.bias(q_index, k_index)

    def scores(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
        q_index: Int[Tensor, "#batch query"],
        k_index: Int[Tensor, "#batch key"],
    ) -> Float[Tensor, "batch heads query key"] | None:
        return self.inner.scores(q, k, q_index, k_index)
