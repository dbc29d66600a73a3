"""Masks: one file each; the contract and its algebra are in `mask`."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from variants.masks.blocks import Blocks as Blocks
    from variants.masks.causal import Causal as Causal
    from variants.masks.dense import Dense as Dense
    from variants.masks.dilated import Dilated as Dilated
    from variants.masks.documents import Documents as Documents
    from variants.masks.full import Full as Full
    from variants.masks.mask import Mask as Mask
    from variants.masks.mask import Sizes as Sizes
    from variants.masks.padding import Padding as Padding
    from variants.masks.prefix import Prefix as Prefix
    from variants.masks.window import Window as Window

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "mask": ["Mask", "Sizes"],
        "full": ["Full"],
        "causal": ["Causal"],
        "window": ["Window"],
        "prefix": ["Prefix"],
        "dilated": ["Dilated"],
        "blocks": ["Blocks"],
        "padding": ["Padding"],
        "documents": ["Documents"],
        "dense": ["Dense"],
    },
)
