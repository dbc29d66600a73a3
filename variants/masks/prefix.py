"""The prefix."""

from variants.masks.mask import Allowed, Index, Mask


class Prefix(Mask):
    """Every query may attend to the first `length` tokens.

    `Causal() | Prefix(2)` is the prefix language model: the prefix sees itself whole, the rest is
    causal. Where a mask pads on the left, the prefix starts at the first real token.

    >>> from variants.masks import Causal
    >>> print((Causal() | Prefix(2)).draw(4))
    ##..
    ##..
    ###.
    ####

    Source: Raffel et al. 2020, section 3.2.1 (arXiv:1910.10683).

    Raises:
        ValueError: If length is negative.
    """

    name = "prefix"
    counts_real_tokens = True

    def __init__(self, length: int) -> None:
        if length < 0:
            raise ValueError(f"a prefix has 0 or more tokens; got length={length}")
        self.length = length

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        return key < self.length
