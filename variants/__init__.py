"""The parts of Transformer encoders, and the skeleton that holds them."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from variants.dims import Dims as Dims
    from variants.encoder import Block as Block
    from variants.encoder import Encoder as Encoder
    from variants.encoder import EncoderOutput as EncoderOutput
    from variants.multihead import MultiHeadAttention as MultiHeadAttention
    from variants.part import Part as Part

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "dims": ["Dims"],
        "part": ["Part"],
        "encoder": ["Encoder", "EncoderOutput", "Block"],
        "multihead": ["MultiHeadAttention"],
    },
)
