"""The contract of norm placements."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from torch import Tensor

from variants.dims import Dims
from variants.norms import Norm
from variants.part import Part
from variants.shapes import Stream

MakeNorm = Callable[[], Norm]
Sublayer = Callable[[Tensor], Tensor]


class NormPlacement(Part):
    """How a sublayer joins the residual stream.

    Each sublayer has a placement of its own, which makes the norms that it needs; a placement with
    `sublayers = 2` joins both sublayers of a block, and is called with both (or with the attention
    alone, where a block has no feed-forward layer).
    """

    final_norm: ClassVar[bool] = False
    """True: the stream that leaves the last block is normalized once more."""
    sublayers: ClassVar[int] = 1
    """How many sublayers one placement joins."""

    def __init__(self, dims: Dims, make_norm: MakeNorm) -> None:
        super().__init__()
        self.dims = dims

    @abstractmethod
    def forward(self, x: Stream, *sublayers: Sublayer) -> Stream:
        """The stream after its sublayer, or sublayers, have joined it."""

    def gain(self, path: str) -> float:
        """A factor on the initial matrix at this path, such as `blocks.0.attention.to_v`.

        It counts unless the initializer scales by depth itself.
        """
        return 1.0
