"""Normalization layers: one file each; the contract is `Norm`."""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from variants.norms.layernorm import LayerNorm as LayerNorm
    from variants.norms.norm import Norm as Norm
    from variants.norms.rmsnorm import RMSNorm as RMSNorm

__getattr__, __dir__ = face(__name__, {"norm": ["Norm"]})
