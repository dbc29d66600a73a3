from variants.masks._cells import Allowed, Index, Repeats, whole
from variants.masks.mask import Mask


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

    `Prefix(0)` allows nothing and changes nothing under `|`: there a sweep over lengths may begin.

    Source: Raffel et al. 2020, section 3.2.1 (arXiv:1910.10683).

    Raises:
        ValueError: If length is negative.
    """

    name = "prefix"
    counts_real_tokens = True

    def __init__(self, length: int) -> None:
        self.length = whole("length", length, 0)

    def repeats(self) -> Repeats:
        return Repeats(start=self.length)

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        return (key >= 0) & (key < self.length)
