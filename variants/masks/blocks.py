"""The block-diagonal mask."""

from variants.masks.mask import Allowed, Index, Mask


class Blocks(Mask):
    """A query may attend to the keys of its own block of `size` consecutive tokens.

    Where a mask pads on the left, blocks are counted from the first real token.

    >>> print(Blocks(2).draw(4))
    ##..
    ##..
    ..##
    ..##

    Source: Child et al. 2019 (arXiv:1904.10509), Zaheer et al. 2020 (arXiv:2007.14062).

    Raises:
        ValueError: If size is not positive.
    """

    name = "blocks"
    counts_real_tokens = True

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1; got size={size}")
        self.size = size

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        return query // self.size == key // self.size
