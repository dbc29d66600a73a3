"""Position encodings: one file each; the contract is `Position`."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from variants.positions.alibi import ALiBi as ALiBi
    from variants.positions.learned import Learned as Learned
    from variants.positions.none import NoPosition as NoPosition
    from variants.positions.position import BeyondTableError as BeyondTableError
    from variants.positions.position import Position as Position
    from variants.positions.rope import RoPE as RoPE
    from variants.positions.sinusoidal import Sinusoidal as Sinusoidal
    from variants.positions.t5_bias import T5Bias as T5Bias

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "position": ["Position", "BeyondTableError"],
        "none": ["NoPosition"],
        "sinusoidal": ["Sinusoidal"],
        "learned": ["Learned"],
        "rope": ["RoPE"],
        "alibi": ["ALiBi"],
        "t5_bias": ["T5Bias"],
    },
)
