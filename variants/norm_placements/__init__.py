"""Norm placements: one file each; the contract is `NormPlacement`."""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from variants.norm_placements.norm_placement import NormPlacement as NormPlacement
    from variants.norm_placements.post import Post as Post
    from variants.norm_placements.pre import Pre as Pre

__getattr__, __dir__ = face(__name__, {"norm_placement": ["NormPlacement"]})
