"""The block-diagonal mask."""

from variants.masks._cells import whole
from variants.masks.mask import Allowed, Index, Mask


class Blocks(Mask):
    """A query may attend to the keys of its own block of `size` consecutive tokens.

    Where a mask pads on the left, blocks are counted from the first real token.

    >>> print(Blocks(2).draw(4))
    ##..
    ##..
    ..##
    ..##

    Longformer and BigBird add global tokens, which see everyone and are seen by everyone, to a
    local mask: that is a combination.

    >>> from variants.masks import Mask, Prefix
    >>> first = Mask.from_rule(lambda batch, head, query, key: query < 1)
    >>> print((Blocks(2) | Prefix(1) | first).draw(5))
    #####
    ##...
    #.##.
    #.##.
    #...#

    Source: Child et al. 2019 (arXiv:1904.10509), Zaheer et al. 2020 (arXiv:2007.14062).

    Raises:
        ValueError: If size is not positive.
    """

    name = "blocks"
    counts_real_tokens = True

    def __init__(self, size: int) -> None:
        self.size = whole("size", size, 1)

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        return query // self.size == key // self.size
