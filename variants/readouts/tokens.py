"""Read every token."""

from jaxtyping import Bool, Float
from torch import Tensor

from variants.readouts.readout import Readout


class Tokens(Readout):
    """The state of every token: (batch, seq, d_model)."""

    name = "tokens"

    def forward(
        self,
        hidden: Float[Tensor, "batch seq d_model"],
        keep: Bool[Tensor, "batch seq"] | None,
    ) -> Float[Tensor, "batch seq d_model"]:
        return hidden
