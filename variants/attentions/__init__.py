"""Attention backends: one file each; the contract is `Attention`."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from variants.attentions.attention import Attention as Attention
    from variants.attentions.explicit import Explicit as Explicit
    from variants.attentions.sdpa import SDPA as SDPA

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "attention": ["Attention"],
        "explicit": ["Explicit"],
        "sdpa": ["SDPA"],
    },
)
