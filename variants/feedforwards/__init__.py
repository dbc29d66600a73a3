"""Feed-forward layers: one file each; the contract is `FeedForward`."""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from variants.feedforwards.feedforward import FeedForward as FeedForward
    from variants.feedforwards.gelu import GELU as GELU
    from variants.feedforwards.relu import ReLU as ReLU
    from variants.feedforwards.swiglu import SwiGLU as SwiGLU

__getattr__, __dir__ = face(__name__, {"feedforward": ["FeedForward"]})
