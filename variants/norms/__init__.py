"""Normalization layers: one file each; the contract is `Norm`."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from variants.norms.layernorm import LayerNorm as LayerNorm
    from variants.norms.norm import Norm as Norm
    from variants.norms.rmsnorm import RMSNorm as RMSNorm

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "norm": ["Norm"],
        "layernorm": ["LayerNorm"],
        "rmsnorm": ["RMSNorm"],
    },
)
