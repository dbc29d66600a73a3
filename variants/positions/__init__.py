"""Position encodings: one file each; the contract is `Position`."""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from variants.positions.alibi import ALiBi as ALiBi
    from variants.positions.learned import Learned as Learned
    from variants.positions.none import NoPosition as NoPosition
    from variants.positions.position import BeyondTableError as BeyondTableError
    from variants.positions.position import Position as Position
    from variants.positions.rope import RoPE as RoPE
    from variants.positions.sinusoidal import Sinusoidal as Sinusoidal
    from variants.positions.t5_bias import T5Bias as T5Bias

__getattr__, __dir__ = face(__name__, {"position": ["Position", "BeyondTableError"]})
