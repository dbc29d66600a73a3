from variants.masks._cells import Allowed, Index, Repeats, whole
from variants.masks.mask import Mask


class Blocks(Mask):
    """A query may attend to the keys of its own block of `size` consecutive tokens.

    With a `radius` it may attend to so many blocks to either side as well. Where a mask pads on
    the left, blocks are counted from the first real token.

    >>> print(Blocks(2).draw(5))
    ##...
    ##...
    ..##.
    ..##.
    ....#
    >>> print(Blocks(2, radius=1).draw(5))
    ####.
    ####.
    #####
    #####
    ..###

    Source: Zaheer et al. 2020, appendix D (arXiv:2007.14062); a radius of 1 is its window of three
    blocks.

    Raises:
        ValueError: If size is not positive, or radius negative.
    """

    name = "blocks"
    counts_real_tokens = True

    def __init__(self, size: int, radius: int = 0) -> None:
        self.size = whole("size", size, 1)
        self.radius = whole("radius", radius, 0)

    def repeats(self) -> Repeats:
        return Repeats(step=self.size, reach=(self.radius + 1) * self.size)

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        return (query // self.size - key // self.size).abs() <= self.radius
