"""Attention backends: one file each; the contract is `Attention`."""

from typing import TYPE_CHECKING

from variants.faces import face

if TYPE_CHECKING:
    from variants.attentions.attention import Attention as Attention
    from variants.attentions.chunked import Chunked as Chunked
    from variants.attentions.explicit import Explicit as Explicit
    from variants.attentions.linear import LinearAttention as LinearAttention
    from variants.attentions.sdpa import SDPA as SDPA

__getattr__, __dir__ = face(__name__, {"attention": ["Attention"]})
