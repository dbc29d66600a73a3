from variants.readouts.readout import Readout
from variants.shapes import Real, Stream


class Tokens(Readout):
    """The state of every token: (batch, seq, d_model)."""

    name = "tokens"

    def forward(self, hidden: Stream, keep: Real | None) -> Stream:
        return hidden
