"""The contract of feed-forward layers, and their two common shapes."""

from abc import abstractmethod
from typing import ClassVar, Literal

from torch import nn

from variants.dims import Dims
from variants.part import Part, at_least
from variants.shapes import Hidden, States

Match = Literal["width", "parameters"]


class FeedForward(Part):
    """The layer of a block that works on each token alone: (…, d_model) to (…, d_model).

    The map that writes into the residual stream is called `to_model`, as it is in the attention:
    initializers that scale by depth know it by that name.
    """

    absent: ClassVar[bool] = False
    """True: a block has no such sublayer, nor the norms that would join it."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims

    @abstractmethod
    def forward(self, x: States) -> States:
        """Transform every token by itself."""


class Plain(FeedForward):
    """activate(W₁x + b₁)W₂ + b₂: two matrices.

    Args:
        d_ff: Hidden width; None means 4 d_model.
    """

    def __init__(self, dims: Dims, d_ff: int | None = None) -> None:
        super().__init__(dims)
        self.d_ff = width(d_ff, default=4 * dims.d_model)
        self.to_hidden = nn.Linear(dims.d_model, self.d_ff, bias=dims.bias)
        self.to_model = nn.Linear(self.d_ff, dims.d_model, bias=dims.bias)

    @abstractmethod
    def activate(self, hidden: Hidden) -> Hidden:
        """The activation."""

    def forward(self, x: States) -> States:
        return self.to_model(self.activate(self.to_hidden(x)))


class Gated(FeedForward):
    """W₂(activate(W₁x) ⊙ Vx): three matrices instead of two.

    Args:
        d_ff: Width, as `match` reads it; None means 4 d_model.
        match: What d_ff fixes. "width": the hidden width is d_ff itself, which costs half as many
            weights again as a plain layer of that width. "parameters": the hidden width is
            round(2/3 d_ff), so that the weights are as many as those of a plain layer of width
            d_ff. None: the width where d_ff is given, the parameters where it is not.
    """

    def __init__(self, dims: Dims, d_ff: int | None = None, match: Match | None = None) -> None:
        super().__init__(dims)
        plain = width(d_ff, default=4 * dims.d_model)
        exact = match == "width" or (match is None and d_ff is not None)
        self.d_ff = plain if exact else max(1, round(2 * plain / 3))
        self.to_gate = nn.Linear(dims.d_model, self.d_ff, bias=dims.bias)
        self.to_hidden = nn.Linear(dims.d_model, self.d_ff, bias=dims.bias)
        self.to_model = nn.Linear(self.d_ff, dims.d_model, bias=dims.bias)

    @abstractmethod
    def activate(self, gate: Hidden) -> Hidden:
        """The activation of the gate."""

    def forward(self, x: States) -> States:
        return self.to_model(self.activate(self.to_gate(x)) * self.to_hidden(x))


def width(d_ff: int | None, default: int) -> int:
    """The hidden width: what was asked for, or the default of the layer.

    Raises:
        ValueError: If d_ff is not positive.
    """
    return default if d_ff is None else at_least(1, "d_ff", d_ff)
