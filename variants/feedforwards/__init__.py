"""Feed-forward layers: one file each; the contract is `FeedForward`."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from variants.feedforwards.feedforward import FeedForward as FeedForward
    from variants.feedforwards.gelu import GELU as GELU
    from variants.feedforwards.relu import ReLU as ReLU
    from variants.feedforwards.swiglu import SwiGLU as SwiGLU

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "feedforward": ["FeedForward"],
        "relu": ["ReLU"],
        "gelu": ["GELU"],
        "swiglu": ["SwiGLU"],
    },
)
