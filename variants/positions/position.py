"""The contract of position encodings: five seams, all of which do nothing by default."""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from variants.dims import Dims
from variants.part import Part


class BeyondTableError(ValueError):
    """A position lies beyond the longest one that the encoding was built for."""


class Position(Part):
    """How an encoder learns where its tokens are.

    An encoding overrides the seams that it needs; the encoder always calls all five. They see
    position *indices*, never lengths, so left padding, offsets and random positions are not
    special cases. One object serves all layers unless the config sets `position_per_layer`.

    - `place(index, generator)`: the indices to use, once a forward.
    - `embed(index)`: vectors added to the token vectors.
    - `rotate(q, k, q_index, k_index)`: queries and keys, turned.
    - `bias(q_index, k_index)`: added to the scores, whatever the content.
    - `scores(q, k, q_index, k_index)`: added to the scores, depending on content.

    Scores are q·k/√d_head; `bias` and `scores` are added after that scaling. Phases, slopes and
    buckets are computed in float32 or better whatever the dtype of the model.
    """

    beyond: ClassVar[Literal["extends", "raises", "clamps", "rescales", "resamples"]] = "extends"
    """What happens past the longest trained index."""
    sees_order: ClassVar[bool] = True
    """False: permuting the tokens permutes the outputs."""
    sees_direction: ClassVar[bool] = True
    """False: reversing the tokens reverses the outputs."""
    distance_only: ClassVar[bool] = False
    """True: shifting all indices by a constant changes nothing."""
    causal_only: ClassVar[bool] = False
    """True: right under a causal mask alone."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims

    def place(
        self, index: Int[Tensor, "batch seq"], generator: torch.Generator | None
    ) -> Int[Tensor, "batch seq"]:
        """The indices at which the tokens of this forward stand."""
        return index

    def embed(self, index: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq d_model"] | None:
        """Vectors to add to the token vectors; None adds nothing."""
        return None

    def rotate(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
        q_index: Int[Tensor, "#batch query"],
        k_index: Int[Tensor, "#batch key"],
    ) -> tuple[Float[Tensor, "batch heads query d_head"], Float[Tensor, "batch heads key d_head"]]:
        """Queries and keys with their positions worked in."""
        return q, k

    def bias(
        self, q_index: Int[Tensor, "batch query"], k_index: Int[Tensor, "batch key"]
    ) -> Float[Tensor, "batch heads query key"] | None:
        """What is added to the scores whatever the content; None adds nothing."""
        return None

    def scores(
        self,
        q: Float[Tensor, "batch heads query d_head"],
        k: Float[Tensor, "batch heads key d_head"],
        q_index: Int[Tensor, "#batch query"],
        k_index: Int[Tensor, "#batch key"],
    ) -> Float[Tensor, "batch heads query key"] | None:
        """What is added to the scores depending on content; None adds nothing."""
        return None
