"""The parts of Transformer encoders, and the skeleton that holds them."""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from variants.block import Block as Block
    from variants.dims import Dims as Dims
    from variants.encoder import Encoder as Encoder
    from variants.encoder import EncoderOutput as EncoderOutput
    from variants.multihead import MultiHeadAttention as MultiHeadAttention
    from variants.part import Part as Part

__getattr__, __dir__ = face(
    __name__,
    {
        "block": ["Block"],
        "dims": ["Dims"],
        "part": ["Part"],
        "encoder": ["Encoder", "EncoderOutput"],
        "multihead": ["MultiHeadAttention"],
    },
)
