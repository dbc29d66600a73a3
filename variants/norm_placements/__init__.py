"""Norm placements: one file each; the contract is `NormPlacement`."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from variants.norm_placements.norm_placement import NormPlacement as NormPlacement
    from variants.norm_placements.post import Post as Post
    from variants.norm_placements.pre import Pre as Pre

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "norm_placement": ["NormPlacement"],
        "pre": ["Pre"],
        "post": ["Post"],
    },
)
